"""QMIX's policy, mixing network and loss: by hand, in every mode, and monotonic in every agent's value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.envs.multi_agent import ParallelEnvironments
from rollstream.envs.multi_agent.toy import TwoStepGame
from rollstream.errors import ConfigError, SpaceError
from rollstream.graph import declare
from rollstream.graph.component_test import component_test
from rollstream.graph.components.mixing import MonotonicMixing
from rollstream.graph.inputs import Input
from rollstream.graph.losses import LossResult
from rollstream.graph.losses.qmix import QmixLoss
from rollstream.graph.memory import Memory
from rollstream.graph.policies.qmix_policy import QmixPolicy
from rollstream.graph.reference import reference
from rollstream.graph.spaced import with_spaces
from rollstream.spaces import Leaf, Presence
from rollstream.spaces.agents import STATE, STATUS

ACTS = int(Presence.ACTS)


def small(**settings: Any) -> QmixPolicy:
    game = ParallelEnvironments(TwoStepGame, name="game", seeds=[0])
    return QmixPolicy(
        game.observation_leaves, game.action_leaves, **{"hidden": (), "mixing_units": 1, "hyper_units": 1, **settings}
    )


def test_the_policy_and_its_loss_agree_in_every_mode() -> None:
    policy = small(hidden=(5,), mixing_units=3, hyper_units=4)
    component_test(policy)
    component_test(QmixLoss(policy))


def test_no_agents_value_rising_lowers_the_joint_value() -> None:
    generator = np.random.default_rng(0)
    mixing = MonotonicMixing(units=4, hyper_units=3)
    spaces = {"output": {"q": Input(name="q", shape=(3,)), "state": Input(name="state", shape=(2,))}}
    component_test(mixing, spaces)
    component = with_spaces(mixing, spaces)
    layout = declare(component).layout
    memory = Memory(layout=layout, flat=generator.normal(size=layout.size).astype(np.float32))
    q = generator.normal(size=(200, 3)).astype(np.float32)
    state = generator.normal(size=(200, 2)).astype(np.float32)
    before = reference(component, api="output", memory=memory, inputs={"q": q, "state": state})
    for agent in range(3):
        raised = q.copy()
        raised[:, agent] += 1.0
        after = reference(component, api="output", memory=memory, inputs={"q": raised, "state": state})
        assert (np.asarray(after) >= np.asarray(before)).all()


def test_the_loss_is_that_of_the_joint_value_by_hand() -> None:
    """Agents: Q = bias of the head (1, 3) online, (10, 20) in the target. Mixing: |W1| = 2 for both, b1 = -1, |w2| = 1, v = 0.5, all by
    biases, so Q_tot = elu(2 q_first + 2 q_second - 1) + 0.5."""
    policy = small()
    layout = declare(policy).layout

    def flat(head: list[float]) -> np.ndarray:
        given = {name: np.zeros(shape, np.float32) for name, shape in zip(layout.names, layout.shapes, strict=True)}
        given["head.bias"] = np.asarray(head, np.float32)
        given["mixing.first.weight.bias"] = np.array([-2.0, 2.0], np.float32)
        given["mixing.shift.bias"] = np.array([-1.0], np.float32)
        given["mixing.second.weight.bias"] = np.array([-1.0], np.float32)
        given["mixing.value.out.bias"] = np.array([0.5], np.float32)
        return layout.join(given)

    rows = 3
    seen = np.zeros((rows, 3), np.float32)
    there = np.array([[ACTS, ACTS], [ACTS, 0], [ACTS, ACTS]], np.uint8)
    inputs: dict[str, Any] = {"action.first": np.array([0, 1, 1]), "action.second": np.array([1, 1, 0])}
    for prefix in ("", "next_"):
        inputs |= {f"{prefix}observation.{agent}": seen for agent in ("first", "second")}
        inputs |= {f"{prefix}{STATE}": seen, f"{prefix}{STATUS}": there, f"{prefix}observation.all.reward": np.zeros((rows, 2))}
    inputs |= {"reward": np.array([1.0, 0.0, 2.0]), "discount": np.array([0.5, 1.0, 0.0]), "weight": np.array([1.0, 1.0, 0.5])}
    inputs = {name: value.astype(np.float32) if value.dtype == np.float64 else value for name, value in inputs.items()}
    memory = Memory(layout=layout, flat=flat([1.0, 3.0]), target=flat([10.0, 20.0]))
    result = reference(QmixLoss(policy, huber_delta=1e9), api="loss", memory=memory, inputs=inputs)
    assert isinstance(result, LossResult)
    now = np.array([2 * 1 + 2 * 3 - 1 + 0.5, 2 * 3 - 1 + 0.5, 2 * 3 + 2 * 1 - 1 + 0.5])  # the second agent of row 1 is not there
    then = np.array([2 * 20 + 2 * 20 - 0.5, 2 * 20 - 0.5, 2 * 20 + 2 * 20 - 0.5])  # online prefers the second action of each
    error = inputs["reward"] + inputs["discount"] * then - now
    np.testing.assert_allclose(result.rows["td_error"], error, rtol=1e-6)
    np.testing.assert_allclose(result.loss, (0.5 * error**2 * inputs["weight"]).mean(), rtol=1e-6)
    np.testing.assert_allclose(result.metrics, [np.abs(error).mean(), now.mean()], rtol=1e-6)


def test_without_a_state_the_mixing_network_reads_what_all_agents_see() -> None:
    game = ParallelEnvironments(TwoStepGame, name="game", seeds=[0])
    leaves = tuple(leaf for leaf in game.observation_leaves if leaf.name != STATE)
    shapes = declare(QmixPolicy(leaves, game.action_leaves)).layout
    width = dict(zip(shapes.names, shapes.shapes, strict=True))["mixing.shift.weight"][0]
    assert width == 6


def test_what_qmix_cannot_do_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    with pytest.raises(SpaceError, match="QmixPolicy needs an environment with several agents"):
        QmixPolicy((box(1),), (discrete(2),))
    status = Leaf(name=STATUS, kind="box", dtype="|u1", shape=(2,), low=(0.0, 0.0), high=(15.0, 15.0))

    def agents(second: Leaf, *actions: Leaf) -> QmixPolicy:
        seen = (Leaf(name="observation.a", kind="box", dtype="<f4", shape=(1,)), second, status)
        return QmixPolicy(seen, actions)

    def seen(shape: int) -> Leaf:
        return Leaf(name="observation.b", kind="box", dtype="<f4", shape=(shape,))

    def choice(name: str) -> Leaf:
        return Leaf(name=name, kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))

    with pytest.raises(SpaceError, match="the spaces of b differ from those of a"):
        agents(seen(2), choice("action.a"), choice("action.b"))
    with pytest.raises(SpaceError, match="QmixPolicy chooses one Discrete action an agent, not 2"):
        agents(seen(1), choice("action.a.x"), choice("action.a.y"), choice("action.b.x"), choice("action.b.y"))
    with pytest.raises(ConfigError, match="huber_delta of QmixLoss must be > 0, got 0"):
        QmixLoss(small(), huber_delta=0)
