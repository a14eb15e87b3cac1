"""A2C, IMPALA and APPO: the whole update of a learner beside the papers' formulas, autograd and torch's own optimizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from rollstream.algorithms import make_agent
from rollstream.graph.optimizers import Adam
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,), low=(-1.0,) * 3, high=(1.0,) * 3),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(4,), starts=(-1,)),)
STEPS, ENVIRONMENTS = 3, 2
Tensors = Mapping[str, torch.Tensor]
COEFFICIENTS = {"value_coefficient": 0.3, "entropy_coefficient": 0.02}
SETTINGS = {"hidden": [5], "max_gradient_norm": 0.7, "learning_rate": 0.01, **COEFFICIENTS}
VTRACE = {**SETTINGS, "rollout_steps": STEPS, "sequence_steps": STEPS, "batch_sequences": ENVIRONMENTS, "optimizer": "adam"}


def judge(p: Tensors, observation: torch.Tensor, action: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability, entropy and value; actions count from -1."""
    hidden = torch.tanh(observation @ p["torso.0.weight"] + p["torso.0.bias"])
    chances = torch.distributions.Categorical(logits=hidden @ p["policy.weight"] + p["policy.bias"])
    far = torch.tanh(observation @ p["value_torso.0.weight"] + p["value_torso.0.bias"])
    return chances.log_prob(action + 1), chances.entropy(), (far @ p["value.weight"] + p["value.bias"])[..., 0]


def batch_of(columns: Mapping[str, np.ndarray]) -> Batch:
    return Batch(columns=columns, env_steps=6, version=1, newest_version=1)


def moved(before: Tensors, loss: Callable[[Tensors], torch.Tensor], make: Callable[..., Any]) -> dict[str, np.ndarray]:
    """Parameters after one step of torch's optimizer with a clipped gradient."""
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in before.items()}
    optimizer = make(list(leaves.values()), lr=SETTINGS["learning_rate"])
    loss(leaves).backward()
    torch.nn.utils.clip_grad_norm_(leaves.values(), SETTINGS["max_gradient_norm"])
    optimizer.step()
    return {name: leaf.detach().numpy() for name, leaf in leaves.items()}


def adam(leaves: Any, lr: float) -> torch.optim.Adam:
    """With the epsilon that is our default."""
    return torch.optim.Adam(leaves, lr=lr, eps=Adam().epsilon)


def tensors_of(learning: Any) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.array(tensor)) for name, tensor in learning.tensors(env_steps=0).items()}


def require_equal(learning: Any, expected: Mapping[str, np.ndarray]) -> None:
    found = learning.tensors(env_steps=0)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_allclose(found[name], tensor, rtol=1e-4, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("mode", ["numpy", "torch"])
def test_one_update_of_a2c_is_one_step_with_the_whole_round(mode: str) -> None:
    rng = np.random.default_rng(0)
    settings = {**SETTINGS, "mode": mode, "microbatch_rows": 4}  # 11 rows are computed as 4 + 4 + 3
    learning = make_agent("a2c", settings, observation=OBSERVATION, actions=ACTIONS).learning(seed=3)
    columns = {
        "observation": rng.normal(size=(11, 3)).astype(np.float32),
        "action": rng.integers(-1, 3, size=11),
        "advantage": rng.normal(size=11).astype(np.float32),
        "return": rng.normal(size=11).astype(np.float32),
    }
    before = tensors_of(learning)

    def loss(p: Tensors) -> torch.Tensor:
        x = {name: torch.from_numpy(column) for name, column in columns.items()}
        log_prob, entropy, value = judge(p, x["observation"], x["action"])
        return (-log_prob * x["advantage"] + 0.3 * (value - x["return"]) ** 2 - 0.02 * entropy).mean()

    learned = learning.learn(batch_of(columns), env_steps=0)
    assert learned.updates == 1
    assert learned.metrics["updates"] == 1
    assert learned.metrics["loss"] == pytest.approx(loss(before).item(), rel=1e-4)
    require_equal(learning, moved(before, loss, lambda leaves, lr: torch.optim.RMSprop(leaves, lr=lr, alpha=0.99, eps=1e-5)))


def trajectories(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two environments of 3 steps and a row that bootstraps each; the first one's second step terminated."""
    rows = ENVIRONMENTS * (STEPS + 1)
    one = np.ones((ENVIRONMENTS, STEPS + 1), np.float32)
    one[:, -1] = 0
    discount, continues = 0.9 * one, one.copy()
    continues[:, -2] = 0
    discount[0, 1] = continues[0, 1] = 0
    return {
        "observation": rng.normal(size=(rows, 3)).astype(np.float32),
        "action": rng.integers(-1, 3, size=rows),
        "log_prob": rng.uniform(-2.0, -0.7, size=rows).astype(np.float32),
        "reward": rng.normal(size=rows).astype(np.float32),
        "discount": discount.reshape(-1),
        "continues": continues.reshape(-1),
        "weight": one.reshape(-1),
        "begins": np.tile(np.array([1, 0, 0, 0], np.uint8), ENVIRONMENTS),
    }


def vtrace_of(x: Tensors, ratio: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Targets and advantages of Espeholt et al. 2018, step by step; all [environments, T]."""
    rho = ratio.clamp(max=1.0)
    target, advantage = value[:, :-1].clone(), torch.zeros(ENVIRONMENTS, STEPS)
    for environment in range(ENVIRONMENTS):
        later = value[environment, STEPS]
        for t in reversed(range(STEPS)):
            v, v_next = value[environment, t], value[environment, t + 1]
            r, gamma, on, p = (item[environment, t] for item in (x["reward"], x["discount"], x["continues"], rho))
            after = later if on else v_next
            advantage[environment, t] = p * (r + gamma * after - v)
            later = v + p * (r + gamma * v_next - v) + gamma * p * (after - v_next)
            target[environment, t] = later
    return target, advantage


def by_environment(columns: Mapping[str, np.ndarray]) -> dict[str, torch.Tensor]:
    shape = (ENVIRONMENTS, STEPS + 1)
    return {name: torch.from_numpy(column.reshape(*shape, *column.shape[1:])) for name, column in columns.items()}


def test_one_update_of_impala_is_one_step_with_the_papers_gradient() -> None:
    learning = make_agent("impala", VTRACE, observation=OBSERVATION, actions=ACTIONS).learning(seed=3)
    columns = trajectories(np.random.default_rng(1))
    before = tensors_of(learning)

    def loss(p: Tensors) -> torch.Tensor:
        x = by_environment(columns)
        log_prob, entropy, value = judge(p, x["observation"], x["action"])
        ratio = (log_prob.detach() - x["log_prob"]).exp()
        target, advantage = vtrace_of(x, ratio[:, :-1], value.detach())
        each = -log_prob[:, :-1] * advantage + 0.3 * (value[:, :-1] - target) ** 2 - 0.02 * entropy[:, :-1]
        return each.mean()

    learned = learning.learn(batch_of(columns), env_steps=0)
    assert learned.updates == 1
    assert learned.metrics["loss"] == pytest.approx(loss(before).item(), rel=1e-4)
    require_equal(learning, moved(before, loss, adam))


def test_updates_of_appo_are_steps_with_the_papers_gradient_around_a_target_that_stays() -> None:
    settings = {**VTRACE, "clip_ratio": 0.2, "worker_clip": 1.5, "kl_coefficient": 0.1}
    learning = make_agent("appo", settings, observation=OBSERVATION, actions=ACTIONS).learning(seed=3)
    columns = trajectories(np.random.default_rng(2))
    first = tensors_of(learning)
    for _ in range(20):  # away from the target, so that clips bite
        learning.learn(batch_of(columns), env_steps=0)
    before = tensors_of(learning)

    def loss(p: Tensors) -> torch.Tensor:
        x = by_environment(columns)
        log_prob, entropy, value = judge(p, x["observation"], x["action"])
        slow = judge(first, x["observation"], x["action"])[0]
        target, advantage = vtrace_of(x, (slow - x["log_prob"])[:, :-1].exp(), value.detach())
        ratio = ((x["log_prob"] - slow).exp().clamp(max=1.5) * (log_prob - x["log_prob"]).exp())[:, :-1]
        surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        moved_by = (log_prob - slow)[:, :-1]
        divergence = moved_by.exp() - 1 - moved_by
        each = -surrogate + 0.3 * (value[:, :-1] - target) ** 2 - 0.02 * entropy[:, :-1] + 0.1 * divergence
        return each.mean()

    expected = loss(before).item()
    learned = learning.learn(batch_of(columns), env_steps=0)
    assert learned.metrics["loss"] == pytest.approx(expected, rel=1e-4)
    assert 0 < learned.metrics["clipped_fraction"] < 1
    again = make_agent("appo", settings, observation=OBSERVATION, actions=ACTIONS).learning(seed=3)
    state = again.state()
    state["update"]["target"] = state["update"]["parameters"].copy()
    state["update"]["parameters"] = _joined(again, before)
    again.restore(state)
    again.learn(batch_of(columns), env_steps=0)
    require_equal(again, moved(before, loss, adam))


def _joined(learning: Any, tensors: Tensors) -> np.ndarray:
    joined: np.ndarray = learning.update.layout.join({name: tensor.numpy() for name, tensor in tensors.items()})
    return joined


def test_the_target_of_appo_moves_when_it_is_synchronized() -> None:
    learning = make_agent("appo", VTRACE, observation=OBSERVATION, actions=ACTIONS).learning(seed=3)
    columns = trajectories(np.random.default_rng(2))
    for _ in range(5):
        learned = learning.learn(batch_of(columns), env_steps=0)
    assert learned.metrics["approximate_kl"] > 1e-6
    learning.sync_target()
    assert learning.learn(batch_of(columns), env_steps=0).metrics["approximate_kl"] == pytest.approx(0.0, abs=1e-9)
