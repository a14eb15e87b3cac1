"""A trial refuses what could not run, before anything runs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rollstream.algorithms.trial import try_out
from rollstream.errors import ConfigError, SpaceError
from rollstream.spaces import Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(4,)),)
ACTION = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
PPO = "rollstream.algorithms.ppo"


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_our_algorithms_pass(name: str) -> None:
    try_out(name, {}, observation=OBSERVATION, actions=ACTION, actors=3)


def test_spaces_that_do_not_suit_are_refused() -> None:
    box = (Leaf(name="action", kind="box", dtype="<f4", shape=(1,)),)
    with pytest.raises(SpaceError, match="needs a Discrete space, got Box"):
        try_out("dqn", {}, observation=OBSERVATION, actions=box)


def test_a_limiter_that_would_deadlock_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"2 \* tolerance_items >= batch_items \+ samples_per_insert fails: 16 < 512 \+ 8"):
        try_out("dqn", {"ratio_tolerance_items": 8}, observation=OBSERVATION, actions=ACTION)


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs the algorithm `theirs`: PPO with another flow page."""

    def install(flow: str) -> None:
        info = tmp_path / "theirs-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[rollstream.algorithms]\ntheirs = theirs_to_try:ALGORITHM\n")
        package = tmp_path / "theirs_to_try"
        package.mkdir()
        (package / "__init__.py").write_text(
            "from rollstream.algorithms import Algorithm\n"
            "ALGORITHM = Algorithm(\n"
            "    name='theirs', package='theirs_to_try', settings='PpoConfig', agent='PpoAgent', needs_replay=False\n"
            ")\n"
        )
        for page in ("config", "agent"):
            (package / f"{page}.py").write_text(f"from {PPO}.{page} import *\n")
        (package / "flow.py").write_text(flow)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        for name in [name for name in sys.modules if name.startswith("theirs_to_try")]:
            monkeypatch.delitem(sys.modules, name)

    return install


def test_what_a_flow_raises_is_told_with_its_own_traceback(theirs: Callable[[str], None]) -> None:
    theirs("def flow(config, *, actors, learner):\n    return actors.rollout()\n")
    with pytest.raises(ConfigError, match="algorithm 'theirs' raised AttributeError: 'Actors' object has no") as caught:
        try_out("theirs", {}, observation=OBSERVATION, actions=ACTION)
    assert 'theirs_to_try/flow.py", line 2, in flow' in str(caught.value)
    assert "/rollstream/algorithms/" not in str(caught.value)


def test_a_flow_that_ends_nowhere_is_refused(theirs: Callable[[str], None]) -> None:
    theirs("def flow(config, *, actors, learner):\n    return actors.rollouts(steps=8)\n")
    with pytest.raises(ConfigError, match="a flow ends in a stream, got Shards"):
        try_out("theirs", {}, observation=OBSERVATION, actions=ACTION)
