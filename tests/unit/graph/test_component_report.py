"""What a component is made of, from its spaces alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gymnasium.spaces import Box

from rollstream.graph.component_report import component_report
from rollstream.graph.components import Dense, Mlp
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api


def test_parts_come_after_what_they_are_part_of_with_their_shapes_and_parameters() -> None:
    report = component_report(
        Mlp(hidden=(4, 3), activation="tanh"), {"output": {"x": Box(-1, 1, (2,))}}, modes=("numpy", "torch")
    )
    assert [(line.path, line.component, line.inputs, line.output, line.parameters) for line in report.lines] == [
        ("", "Mlp", "x [B, 2]", "[B, 3]", 2 * 4 + 4 + 4 * 3 + 3),
        ("0", "Dense", "x [B, 2]", "[B, 4]", 2 * 4 + 4),
        ("1", "Dense", "x [B, 4]", "[B, 3]", 4 * 3 + 3),
    ]
    assert report.parameters == 27
    assert all(milliseconds is not None for line in report.lines for milliseconds in line.build_ms.values())
    assert not report.refusals


@dataclass(frozen=True)
class Halved:
    """A part that takes a plain number, so it cannot be rebuilt from arrays alone."""

    @api
    def output(self, scope: Scope, x: Array, share: float) -> Array:
        return x * share


@dataclass(frozen=True)
class Whole:
    """Uses it."""

    apis: ClassVar[tuple[str, ...]] = ("output",)

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(3,))}

    @api
    def output(self, scope: Scope, *, x: Array) -> Array:
        return Dense(features=2).output(scope.child("dense"), Halved().output(scope.child("half"), x, 0.5))


def test_a_part_that_cannot_be_built_alone_says_why() -> None:
    report = component_report(Whole(), modes=("numpy",))
    half = next(line for line in report.lines if line.path == "half")
    assert half.build_ms == {"numpy": None}
    assert half.inputs == "x [B, 3], share 0.5"
    assert report.refusals == {
        "half Halved.output in numpy": "argument share is no array but float, so this part cannot be built alone"
    }
