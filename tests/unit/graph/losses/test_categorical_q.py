"""C51, worked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.discrete import value_to_index
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses import CategoricalQLoss, LossResult
from rollstream.graph.losses.categorical_q import project
from rollstream.graph.ops import Array
from rollstream.graph.policies import QPolicy
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

SUPPORT = np.array([-1.0, 0.0, 1.0], np.float32)


def _project(returns: list[float], probability: list[float]) -> list[float]:
    found = project(NumpyOps(), np.array([returns], np.float32), np.array([probability], np.float32), SUPPORT)
    return [float(number) for number in found[0]]


def test_a_return_between_two_atoms_is_divided_between_them() -> None:
    np.testing.assert_allclose(_project([-1.0, 0.25, 1.0], [0.0, 1.0, 0.0]), [0.0, 0.75, 0.25])


def test_a_return_on_an_atom_stays_there_whole_and_one_outside_goes_to_the_end() -> None:
    np.testing.assert_allclose(_project([-9.0, 0.0, 7.0], [0.25, 0.5, 0.25]), [0.25, 0.5, 0.25])


def test_what_arrives_adds_up() -> None:
    # all at 0.5, as after an end with reward 0.5
    np.testing.assert_allclose(_project([0.5, 0.5, 0.5], [0.2, 0.3, 0.5]), [0.0, 0.5, 0.5])


@dataclass(frozen=True)
class _Table:
    """Logits are parameters, the same in every state."""

    observation: tuple[Leaf, ...]
    actions: tuple[Leaf, ...]
    support: np.ndarray
    apis: ClassVar[tuple[str, ...]] = ("q_log_probs",)

    def arguments(self, api: str) -> Arguments:
        return {"observation": columns_of(self.observation)}

    @property
    def action_columns(self) -> tuple[Input, ...]:
        return columns_of(self.actions)

    def action_index(self, scope: Scope, action: Mapping[str, Array]) -> Array:
        return value_to_index(scope.ops, self.actions[0], action["action"])

    @api
    def q_log_probs(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        logits = scope.parameter("logits", (2, 3), Constant()) + observation["observation"][:, :, None] * 0.0
        return scope.ops.log_softmax(logits)

    def q_values(self, scope: Scope, *, observation: Mapping[str, Array]) -> Array:
        return scope.ops.sum(scope.ops.exp(self.q_log_probs(scope, observation=observation)) * self.support, axis=-1)


def test_the_online_network_chooses_and_the_target_network_tells_the_distribution(
    evaluated: Callable[..., LossResult], box: Callable[..., Leaf], discrete: Callable[..., Leaf]
) -> None:
    policy = _Table((box(1),), (discrete(2),), SUPPORT)
    log = np.log
    online = {"logits": [log([0.5, 0.25, 0.25]), log([0.25, 0.25, 0.5])]}  # means -0.25 and 0.25: action 1 is best
    target = {"logits": [log([0.1, 0.1, 0.8]), log([0.2, 0.4, 0.4])]}
    columns = {
        "observation": np.ones((2, 1)),
        "next_observation": np.ones((2, 1)),
        "action": [0, 1],
        "reward": [0.5, 0.5],
        "discount": [0.5, 0.0],
        "weight": [1.0, 0.5],
    }
    result = evaluated(CategoricalQLoss(policy), online, columns, target)
    # row 0: returns 0, 0.5, 1 of probabilities 0.2, 0.4, 0.4 -> atoms 0: 0.4, 1: 0.6.  row 1: all at 0.5 -> 0.5, 0.5
    cross = [-(0.4 * log(0.25) + 0.6 * log(0.25)), -(0.5 * log(0.25) + 0.5 * log(0.5))]
    divergence = [cross[0] + 0.4 * log(0.4) + 0.6 * log(0.6), cross[1] - math.log(2.0)]
    np.testing.assert_allclose(result.loss, (cross[0] + 0.5 * cross[1]) / 2, rtol=1e-5)
    np.testing.assert_allclose(result.rows["td_error"], divergence, rtol=1e-5)
    np.testing.assert_allclose(result.metrics, [sum(cross) / 2, sum(divergence) / 2, 0.0], rtol=1e-5, atol=1e-7)


def test_an_action_that_is_forbidden_next_is_not_chosen(
    evaluated: Callable[..., LossResult], box: Callable[..., Leaf], discrete: Callable[..., Leaf]
) -> None:
    mask = Leaf(name="observation.action_mask", kind="multi_binary", dtype="|i1", shape=(2,))
    policy = QPolicy(
        (box(1, name="observation.place"), mask), (discrete(2),), hidden=(), distribution="c51", atoms=3, low=-1.0, high=1.0
    )
    bias = np.log([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])  # action 1 is best
    columns = {
        "observation.place": np.zeros((2, 1)),
        "observation.action_mask": [[1, 1], [1, 1]],
        "next_observation.place": np.zeros((2, 1)),
        "next_observation.action_mask": [[1, 1], [1, 0]],
        "action": [0, 0],
        "reward": [0.0, 0.0],
        "discount": [1.0, 1.0],
        "weight": [1.0, 1.0],
    }
    result = evaluated(CategoricalQLoss(policy), {"head.bias": bias}, columns, {"head.bias": bias})
    # KL of (1/4, 1/4, 1/2) from (1/2, 1/4, 1/4), and of the distribution of action 0 from itself
    np.testing.assert_allclose(result.rows["td_error"], [0.25 * math.log(2.0), 0.0], atol=1e-6)
