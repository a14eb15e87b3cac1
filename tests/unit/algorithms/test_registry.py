"""The registry names algorithms and refuses others."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.algorithms import algorithm, known, needs_replay, settings_type
from rollstream.config import load
from rollstream.errors import ConfigError


def test_ppo_and_dqn_are_known() -> None:
    assert known() == ["dqn", "ppo"]
    assert needs_replay("dqn") and not needs_replay("ppo")


def test_an_unknown_algorithm_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="unknown algorithm 'dqnn'; did you mean 'dqn'"):
        algorithm("dqnn")


def test_an_installed_package_brings_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs.py").write_text(
        "from rollstream.algorithms import Algorithm\n"
        "ALGORITHM = Algorithm(name='mine', package='theirs', settings='S', agent='A', needs_replay=False)\n"
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[rollstream.algorithms]\nmine = theirs:ALGORITHM\nwrong = theirs:__name__\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "mine" in known()
    assert algorithm("mine").package == "theirs"
    with pytest.raises(ConfigError, match="entry point 'wrong' of rollstream.algorithms must name an Algorithm"):
        algorithm("wrong")


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"min_items \(10\) must be <= table_items \(5\)"):
        load(settings_type("dqn"), {"min_items": 10, "table_items": 5}, what="settings of dqn")
    with pytest.raises(ConfigError, match=r"epsilon_end \(0.5\) must be <= epsilon_start \(0.1\)"):
        load(settings_type("dqn"), {"epsilon_end": 0.5, "epsilon_start": 0.1}, what="settings of dqn")


def test_an_unknown_setting_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="settings.learning_rat: unknown setting; did you mean 'learning_rate'"):
        load(settings_type("ppo"), {"learning_rat": 1}, what="settings of ppo", path="settings")
