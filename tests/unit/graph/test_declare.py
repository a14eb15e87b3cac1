"""The shape pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, DoubleQLoss, QPolicy, declare
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array
from rollstream.graph.report import BuildReport, Compiled
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf


def test_parameters_are_declared_from_spaces_alone(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    layout = declare(ActorCriticPolicy((box(4),), (discrete(2),), hidden=(8,))).layout
    assert dict(zip(layout.names, layout.shapes, strict=True)) == {
        "torso.0.weight": (4, 8),
        "torso.0.bias": (8,),
        "policy.weight": (8, 2),
        "policy.bias": (2,),
        "value.weight": (8, 1),
        "value.bias": (1,),
    }


def test_a_loss_has_the_layout_of_its_policy(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = QPolicy((box(),), (discrete(3),), dueling=True)
    of_loss = declare(DoubleQLoss(policy))
    assert of_loss.layout.hash == declare(policy).layout.hash
    assert of_loss.uses_target
    assert not declare(policy).uses_target


@dataclass(frozen=True)
class _Component:
    """Takes x [B, 3] and does with it what the test says."""

    run: Callable[[Scope, Array], Array]
    apis: ClassVar[tuple[str, ...]] = ("output",)

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(3,))}

    @api
    def output(self, scope: Scope, *, x: Array) -> Mapping[str, Array]:
        return {"y": self.run(scope.child("part"), x)}


def test_what_does_not_fit_is_refused_with_component_api_and_reason() -> None:
    component = _Component(lambda scope, x: scope.ops.linear(x, scope.parameter("w", (4, 2), Constant()), 0.0))
    with pytest.raises(ConfigError, match=r"\(root\): _Component.output does not fit its inputs: .*(3|4)"):
        declare(component)


def test_one_name_with_two_shapes_is_refused() -> None:
    component = _Component(
        lambda scope, x: scope.parameter("w", (4,), Constant())[:3] * x * scope.parameter("w", (3,), Constant())
    )
    with pytest.raises(ConfigError, match=r"parameter part.w is used with shapes \[4\] and \[3\]; give one of them another name"):
        declare(component)


def test_the_report_has_a_line_for_each_api_call(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    declared = declare(QPolicy((box(4),), (discrete(2),), hidden=(8,)), clock=FakeClock())
    report = BuildReport.of(declared, mode="torch-graph").compiled(Compiled(nodes=12, trace_s=0.5, compile_s=4.0))
    text = report.text()
    assert "torso.0                  Dense.output                         40" in text
    assert "mode torch-graph: 58 parameters" in text
    assert "graph: 12 operations, trace 0.5 s, compile 4.0 s" in text
