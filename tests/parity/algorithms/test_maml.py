"""MAML's meta-gradient beside finite differences in double precision of a loss that is written out here, and actor beside learner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from rollstream.algorithms import make_agent
from rollstream.algorithms.maml.agent import INNER
from rollstream.errors import SchemaMismatch
from rollstream.graph import ActorCriticPolicy, PpoLoss, declare
from rollstream.graph.backends.torch.meta_gradient import MetaGradient
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(2,), low=(-1.0,) * 2, high=(1.0,) * 2),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(0,)),)
OUTER = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.1}
RATE = 0.7
POLICY = ActorCriticPolicy(OBSERVATION, ACTIONS, hidden=(3,), shared_torso=False)
LAYOUT = declare(POLICY).layout
Columns = dict[str, np.ndarray]


def rows_of(rng: np.random.Generator, rows: int) -> Columns:
    return {
        "observation": rng.normal(size=(rows, 2)).astype(np.float32),
        "action": rng.integers(0, 3, size=rows),
        "log_prob": rng.uniform(-1.4, -0.8, size=rows).astype(np.float32),
        "advantage": rng.normal(size=rows).astype(np.float32),
        "return": rng.normal(size=rows).astype(np.float32),
    }


def plain_loss(flat: torch.Tensor, columns: Columns, *, clip: float, c1: float, c2: float) -> torch.Tensor:
    """PPO's loss of a policy with one hidden layer of 3 tanh units, in the precision of `flat`."""
    sizes = [parameter.size for parameter in LAYOUT.parameters]
    p = {
        parameter.name: part.reshape(parameter.shape)
        for parameter, part in zip(LAYOUT.parameters, flat.split(sizes), strict=True)
    }
    x = {name: torch.from_numpy(column) for name, column in columns.items()}
    x = {name: column.double() if column.is_floating_point() else column for name, column in x.items()}
    chances = torch.distributions.Categorical(
        logits=torch.tanh(x["observation"] @ p["torso.0.weight"] + p["torso.0.bias"]) @ p["policy.weight"] + p["policy.bias"]
    )
    far = torch.tanh(x["observation"] @ p["value_torso.0.weight"] + p["value_torso.0.bias"])
    value = (far @ p["value.weight"] + p["value.bias"])[:, 0]
    ratio = (chances.log_prob(x["action"]) - x["log_prob"]).exp()
    surrogate = torch.minimum(ratio * x["advantage"], ratio.clamp(1 - clip, 1 + clip) * x["advantage"])
    return (c1 * (value - x["return"]) ** 2 - surrogate - c2 * chances.entropy()).mean()


def after_steps(flat: np.ndarray, tasks: Sequence[Sequence[Columns]]) -> float:
    """Mean loss of the tasks' last phases, by parameters that stepped on the others; float64."""
    losses = []
    for task in tasks:
        at = torch.from_numpy(flat).requires_grad_()
        for columns in task[:-1]:
            (slope,) = torch.autograd.grad(plain_loss(at, columns, clip=1e6, c1=0.0, c2=0.0), at)
            at = (at - RATE * slope).detach().requires_grad_()
        losses.append(plain_loss(at, task[-1], clip=0.2, c1=0.5, c2=0.1).item())
    return float(np.mean(losses))


def by_finite_differences(flat: np.ndarray, tasks: Sequence[Sequence[Columns]]) -> np.ndarray:
    step = 1e-5
    sides = [[after_steps(flat + sign * step * unit, tasks) for sign in (1, -1)] for unit in np.eye(len(flat))]
    return np.array([(above - below) / (2 * step) for above, below in sides])


def meta(*, first_order: bool = False) -> MetaGradient:
    return MetaGradient(PpoLoss(POLICY), inner=INNER, outer=OUTER, inner_learning_rate=RATE, first_order=first_order)


def parameters() -> np.ndarray:
    return LAYOUT.init(0) + np.random.default_rng(5).normal(0, 0.3, LAYOUT.size).astype(np.float32)


@pytest.mark.parametrize("inner_steps", [1, 2])
def test_the_meta_gradient_goes_through_the_steps_of_adaptation(inner_steps: int) -> None:
    rng = np.random.default_rng(1)
    tasks = [[rows_of(rng, 6 + task) for _ in range(inner_steps + 1)] for task in range(3)]  # of unequal numbers of rows
    found = meta().gradient(parameters(), tasks)
    expected = by_finite_differences(parameters().astype(np.float64), tasks)
    np.testing.assert_allclose(found.vector, expected, rtol=1e-3, atol=2e-5)
    assert found.metrics["loss"] == pytest.approx(after_steps(parameters().astype(np.float64), tasks), rel=1e-4)


def test_first_order_is_the_gradient_at_the_adapted_parameters() -> None:
    rng = np.random.default_rng(2)
    tasks = [[rows_of(rng, 8), rows_of(rng, 8)] for _ in range(2)]
    found = meta(first_order=True).gradient(parameters(), tasks).vector
    slopes = []
    for before, after in tasks:
        adapted = torch.from_numpy(meta().adapted(parameters(), before).astype(np.float64)).requires_grad_()
        slopes.append(torch.autograd.grad(plain_loss(adapted, after, clip=0.2, c1=0.5, c2=0.1), adapted)[0].numpy())
    np.testing.assert_allclose(found, np.mean(slopes, axis=0), rtol=1e-3, atol=1e-5)
    assert np.abs(found - meta().gradient(parameters(), tasks).vector).max() > 1e-3  # and not the one through the step


def test_an_actor_adapts_as_the_learner_believes() -> None:
    agent: Any = make_agent("maml", {"hidden": [3], "inner_learning_rate": RATE}, observation=OBSERVATION, actions=ACTIONS)
    columns = rows_of(np.random.default_rng(3), 9)
    tensors = LAYOUT.split(parameters())
    moved = agent.adaptation().adapted(columns, tensors)
    np.testing.assert_allclose(LAYOUT.join(moved), meta().adapted(parameters(), columns), rtol=1e-4, atol=1e-6)
    assert np.abs(LAYOUT.join(moved) - parameters()).max() > 1e-3


def message(rng: np.random.Generator, phases: Sequence[int]) -> Batch:
    parts: list[Mapping[str, np.ndarray]] = [
        {
            **rows_of(rng, 5),
            "reward": np.full(5, float(phase), np.float32),
            "task": np.full(5, 7 + place // 2, np.int64),
            "phase": np.full(5, phase, np.uint8),
        }
        for place, phase in enumerate(phases)
    ]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Batch(columns=columns, env_steps=5 * len(parts), version=1, newest_version=1)


def test_the_learner_makes_several_meta_updates_of_a_round_and_its_state_comes_back() -> None:
    settings = {"hidden": [3], "epochs": 3}
    one, other = (make_agent("maml", settings, observation=OBSERVATION, actions=ACTIONS).learning(seed=1) for _ in range(2))
    batch = message(np.random.default_rng(4), [0, 1, 0, 1])
    before = one.tensors(env_steps=0)
    learned = one.learn(batch, env_steps=0)
    assert learned.updates == 3
    assert (learned.metrics["updates"], learned.metrics["skipped_updates"]) == (3, 0)
    assert (learned.metrics["reward_before"], learned.metrics["reward_after"]) == (0.0, 1.0)
    assert any(not np.array_equal(before[name], tensor) for name, tensor in one.tensors(env_steps=0).items())
    other.restore(one.state())
    one.learn(batch, env_steps=0)
    other.learn(batch, env_steps=0)
    for name, tensor in one.tensors(env_steps=0).items():
        np.testing.assert_array_equal(tensor, other.tensors(env_steps=0)[name])


def test_rows_that_do_not_fit_are_refused() -> None:
    learning = make_agent("maml", {"hidden": [3]}, observation=OBSERVATION, actions=ACTIONS).learning(seed=1)
    with pytest.raises(SchemaMismatch, match=r"tasks have the phases \[0, 1, 2\], this learner differentiates through 2 each"):
        learning.learn(message(np.random.default_rng(4), [0, 1, 2]), env_steps=0)
    columns = rows_of(np.random.default_rng(3), 4)
    del columns["return"]
    with pytest.raises(SchemaMismatch, match="the loss reads column return, which is missing; a task has action, "):
        meta().gradient(parameters(), [[columns, columns]])
