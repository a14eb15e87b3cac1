"""The test of components finds what is wrong with one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary

from rollstream.graph import ActorCriticPolicy, PpoLoss, QPolicy
from rollstream.graph.component_test import QUICK_MODES, component_test
from rollstream.graph.components import Dense
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import leaves


@dataclass(frozen=True)
class _Component:
    run: Callable[[Scope, Array], Array]
    apis: ClassVar[tuple[str, ...]] = ("output",)

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(3,))}

    @api
    def output(self, scope: Scope, *, x: Array) -> Mapping[str, Array]:
        return {"y": self.run(scope, x)}


def _scaled(scope: Scope, x: Array) -> Array:
    return x * scope.parameter("scale", (3,), Constant(value=2.0))


def test_a_sound_component_passes_in_all_modes_and_in_its_gradient() -> None:
    compared = component_test(_Component(lambda scope, x: scope.ops.tanh(_scaled(scope, x))))
    assert [comparison.mode for comparison in compared] == [*QUICK_MODES, "gradient"]


def test_a_component_that_differs_between_backends_is_named() -> None:
    def branches(scope: Scope, x: Array) -> Array:
        return _scaled(scope, x) + (1.0 if type(scope.ops).__name__ == "TorchOps" else 0.0)

    with pytest.raises(AssertionError, match=r"_Component.output in mode torch, output y: differs by 1.00e\+00"):
        component_test(_Component(branches))


def test_a_gradient_that_is_stopped_by_mistake_is_found() -> None:
    with pytest.raises(AssertionError, match=r"_Component.output: autograd's slope differs"):
        component_test(_Component(lambda scope, x: _scaled(scope, x) + scope.ops.stop_gradient(_scaled(scope, x))))


def test_an_output_of_another_dtype_is_named() -> None:
    def widened(scope: Scope, x: Array) -> Array:
        return x.double() if type(scope.ops).__name__ == "TorchOps" else x

    with pytest.raises(AssertionError, match=r"in mode torch, output y: dtype float64, the reference has float32"):
        component_test(_Component(widened), modes=("torch",))


def test_state_that_is_written_otherwise_is_named() -> None:
    def forgets(scope: Scope, x: Array) -> Array:
        total = scope.state("total", ())
        scope.set_state("total", total + (0.0 if type(scope.ops).__name__ == "TorchOps" else 1.0))
        return x

    with pytest.raises(AssertionError, match=r"in mode torch, state total: differs by 1"):
        component_test(_Component(forgets), modes=("torch",))


def test_a_part_is_fed_from_spaces() -> None:
    assert component_test(Dense(features=2), {"output": {"x": Box(-1, 1, (3,))}})


def test_masked_actions_have_no_slope_and_the_others_have_the_right_one() -> None:
    observation = leaves(Dict(x=Box(-1, 1, (4,)), action_mask=MultiBinary(3)), "observation")
    policy = ActorCriticPolicy(observation, leaves(Discrete(3), "action"), hidden=(8,))
    for component in (policy, PpoLoss(policy), QPolicy(observation, leaves(Discrete(3), "action"), hidden=(8,))):
        assert component_test(component, modes=("numpy", "torch"))


def test_modes_that_are_not_installed_are_left_out_and_the_result_says_which_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "jax", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    compared = component_test(_Component(_scaled))
    assert [comparison.mode for comparison in compared] == ["numpy", "gradient"]
    with pytest.raises(AssertionError, match=r"autograd's slope differs"):
        component_test(_Component(lambda scope, x: _scaled(scope, x) + scope.ops.stop_gradient(_scaled(scope, x))))
