"""The live view of a flow, and what `rollstream flow show` describes without an environment."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from rollstream.config import EnvironmentSpec
from rollstream.errors import ConfigError, SpaceError
from rollstream.flow import FlowView, view_of
from rollstream.flow.bottleneck import Bottleneck
from rollstream_cli.errors import RestError
from rollstream_cli.flow.live import FlowWatch, newest_running
from rollstream_cli.flow.subject import FORCE, NUMBERS, describe_flow


class Answers:
    """A cell that answers from a list of phases; an error in the list is raised."""

    def __init__(self, view: FlowView | None, phases: list[Any]) -> None:
        self._flow = None if view is None else view.to_json()
        self._phases = phases

    def get(self, path: str) -> dict[str, Any]:
        if path.endswith("/flow"):
            return {"id": "x", "flow": self._flow}
        phase = self._phases.pop(0)
        if isinstance(phase, Exception):
            raise phase
        return {"phase": phase}


def shown(view: FlowView | None, phases: list[Any]) -> str:
    console = Console(file=io.StringIO(), width=160)
    FlowWatch(Answers(view, phases), "x").run(console, every_s=1.0, keys=lambda _: "")  # type: ignore[arg-type]
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def running() -> FlowView:
    view = view_of(describe_flow("ppo", {}))
    nodes = [replace(node, items=3, items_per_s=2.0, busy_share=0.5, waited_share=0.25, waited_s=7.5) for node in view.nodes]
    said = Bottleneck(who="learner", for_whom="actors", share=0.71, sentence="learner waits for actors: 71 % of the time")
    return replace(view, nodes=tuple(nodes), bottleneck=said)


def test_every_operator_has_a_line_and_the_bottleneck_stands_below_until_the_experiment_ends() -> None:
    text = shown(running(), ["running", "succeeded"])
    assert text.count("learner waits for actors: 71 % of the time") == 2
    assert "barrier, in flight 1" in text
    assert "50 %" in text
    assert "25 %" in text
    assert "x  succeeded" in text


def test_a_flow_that_is_not_built_yet_and_a_cell_that_is_away_are_said() -> None:
    text = shown(None, ["starting", RestError("control is away"), "stopped"])
    assert "the learner has not built the flow yet" in text
    assert "control is away" in text


def test_the_newest_that_runs_is_chosen() -> None:
    listed = [{"id": "c", "phase": "failed"}, {"id": "b", "phase": "running"}, {"id": "a", "phase": "running"}]
    assert newest_running({"experiments": listed}) == "b"
    assert newest_running({"experiments": listed[:1]}) == "c"
    with pytest.raises(ConfigError, match="the cell has no experiments"):
        newest_running({"experiments": []})


def test_toy_spaces_stand_in_for_an_environment() -> None:
    assert next(node.name for node in describe_flow("ppo", {}).nodes) == "rollouts"
    assert describe_flow("dqn", {}).tables == ("replay",)


def test_an_algorithm_for_other_spaces_asks_for_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollstream_cli.flow.subject.TOY_SPACES", (((NUMBERS,), (FORCE,)),))
    with pytest.raises(ConfigError, match="dqn takes none of the toy spaces .*name an environment with --env"):
        describe_flow("dqn", {})


def test_a_named_environment_is_made_for_its_spaces() -> None:
    with pytest.raises(SpaceError, match="needs a Discrete space"):
        describe_flow("dqn", {}, environment=EnvironmentSpec(id="Pendulum-v1"))
