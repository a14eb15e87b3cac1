"""The registry names algorithms and refuses others."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

from rollstream.algorithms import algorithm, known, needs_replay, settings_type
from rollstream.config import load
from rollstream.errors import ConfigError


def test_ppo_and_the_family_of_dqn_are_known_in_order() -> None:
    assert {"apex", "dqn", "ppo", "r2d2", "rainbow"} <= set(known())
    assert known() == sorted(known())
    assert needs_replay("dqn") and not needs_replay("ppo")


def test_an_unknown_algorithm_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="unknown algorithm 'dqnn'; did you mean 'dqn'"):
        algorithm("dqnn")


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package of modules `theirs_<name>`, with entry points of algorithms."""
    monkeypatch.syspath_prepend(str(tmp_path))
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")

    def write(entry_points: str, **modules: str) -> None:
        for name, source in modules.items():
            (tmp_path / f"theirs_{name}.py").write_text(source)
        (info / "entry_points.txt").write_text(f"[rollstream.algorithms]\n{entry_points}\n")
        importlib.invalidate_caches()

    return write


def described(package: str) -> str:
    return (
        "from rollstream.algorithms import Algorithm\n"
        f"ALGORITHM = Algorithm(name='mine', package='{package}', settings='S', agent='A', needs_replay=False)\n"
    )


def test_an_installed_package_brings_its_own(install: Callable[..., None]) -> None:
    install("mine = theirs_good:ALGORITHM\nwrong = theirs_good:__name__", good=described("theirs_good"))
    assert "mine" in known()
    assert algorithm("mine").package == "theirs_good"
    with pytest.raises(ConfigError, match="entry point 'wrong' of rollstream.algorithms must name an Algorithm"):
        algorithm("wrong")


def test_a_package_that_cannot_be_imported_is_told_with_its_own_traceback(install: Callable[..., None]) -> None:
    install("mine = theirs_raising:ALGORITHM", raising="1 / 0\n")
    with pytest.raises(
        ConfigError, match="algorithm 'mine': theirs_raising:ALGORITHM cannot be imported: ZeroDivision"
    ) as caught:
        algorithm("mine")
    assert 'theirs_raising.py", line 1, in <module>' in str(caught.value)
    assert "/rollstream/algorithms/" not in str(caught.value)


def test_a_page_that_is_missing_or_cannot_be_read_is_told(install: Callable[..., None], tmp_path: Path) -> None:
    install("mine = theirs_pages:ALGORITHM", pages=described("theirs_package"))
    with pytest.raises(ConfigError, match=r"theirs_package.config cannot be imported: ModuleNotFoundError: .*'theirs_package'$"):
        settings_type("mine")
    package = tmp_path / "theirs_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "config.py").write_text("class S(:\n")
    importlib.invalidate_caches()
    with pytest.raises(ConfigError, match="theirs_package.config cannot be imported: SyntaxError") as caught:
        settings_type("mine")
    assert 'config.py", line 1' in str(caught.value)
    (package / "config.py").write_text("# nothing here, and longer than before\n")
    importlib.invalidate_caches()
    with pytest.raises(
        ConfigError, match="algorithm 'mine': theirs_package.config has no 'S'; define it, or correct its Algorithm"
    ):
        settings_type("mine")


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"min_items \(10\) must be <= table_items \(5\)"):
        load(settings_type("dqn"), {"min_items": 10, "table_items": 5}, what="settings of dqn")
    with pytest.raises(ConfigError, match=r"epsilon_end \(0.5\) must be <= epsilon_start \(0.1\)"):
        load(settings_type("dqn"), {"epsilon_end": 0.5, "epsilon_start": 0.1}, what="settings of dqn")


def test_an_unknown_setting_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="settings.learning_rat: unknown setting; did you mean 'learning_rate'"):
        load(settings_type("ppo"), {"learning_rat": 1}, what="settings of ppo", path="settings")
