"""What updates cost when they are written by hand in JAX and optax, and a loss with its advantages inside: measures of mode `jax`.

    OMP_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false NPROC=1 python tests/bench/jax_reference.py

Two hidden layers of 64, 256 rows, as the benchmark of the graph. Parameters are a tree, as in the examples of optax.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rollstream.clock import SystemClock
from rollstream.graph import Adam, DoubleQLoss, PpoLoss, build, build_update, gae
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream_learner.bench.subjects import ROWS, SETTINGS, acting_policy, batch_of, dueling_policy, ppo_policy
from rollstream_learner.bench.timing import Pace, alternate

__all__ = ["RolloutPpoLoss", "plain_act", "plain_dqn_update", "plain_ppo_epoch", "plain_ppo_update"]

MINIBATCHES = 16
RATE, MAX_NORM, LAMBDA = 3e-4, 0.5, 0.95
Call = Callable[[], object]
Batch = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class RolloutPpoLoss:
    """PPO on one rollout of T steps, its advantages by GAE as part of the loss: each row is the step after the row before."""

    inside: PpoLoss

    apis: ClassVar[tuple[str, ...]] = ("loss",)

    @property
    def policy(self) -> Any:
        return self.inside.policy

    @property
    def metric_names(self) -> tuple[str, ...]:
        return self.inside.metric_names

    def arguments(self, api: str) -> Arguments:
        given = {name: item for name, item in self.inside.arguments(api).items() if name not in ("advantage", "return_")}
        series = ("reward", "discount", "value", "next_value", "continues")
        return {**given, **{name: Input(name=name, low=0.0) for name in series}}

    @api
    def loss(
        self, scope: Scope, *, reward: Array, discount: Array, value: Array, next_value: Array, continues: Array, **given: Any
    ) -> LossResult:
        """Shapes: all columns [T]."""
        advantage = gae(scope.ops, reward, discount, value, next_value, continues, gae_lambda=LAMBDA)
        return self.inside.loss(scope, advantage=advantage, return_=advantage + value, **given)


def plain_act(observation: np.ndarray, *, actions: int) -> Call:
    """Action, log-probability and value of a tanh MLP with one torso."""
    torso, policy, value = (_layers(sizes) for sizes in ((observation.shape[1], 64, 64), (64, actions), (64, 1)))
    noise = np.random.default_rng(0).random(len(observation), np.float32)

    @jax.jit
    def act(parameters: Any, x: Any, noise: Any) -> Any:
        hidden = _mlp(parameters[0], x, last=jnp.tanh)
        log_probs = jax.nn.log_softmax(_mlp(parameters[1], hidden))
        action = jnp.sum(jnp.cumsum(jnp.exp(log_probs), -1)[:, :-1] <= noise[:, None], -1)
        return action, jnp.take_along_axis(log_probs, action[:, None], -1)[:, 0], _mlp(parameters[2], hidden)[:, 0]

    parameters = (torso, policy, value)
    return lambda: [np.asarray(column) for column in act(parameters, observation, noise)]


def plain_ppo_update(batch: Batch, *, actions: int) -> Call:
    """One update, parameters and moments kept on the device and donated."""
    return _repeat(_ppo_step(), _ppo_parameters(batch, actions), batch)


def plain_ppo_epoch(batch: Batch, *, actions: int) -> Call:
    """An update with each of 16 minibatches, by `lax.scan`."""
    step = _ppo_step()

    def epoch(kept: Any, batch: Any) -> Any:
        return jax.lax.scan(step, kept, batch)

    parts = {name: column.reshape(MINIBATCHES, -1, *column.shape[1:]) for name, column in batch.items()}
    return _repeat(epoch, _ppo_parameters(batch, actions), parts)


def plain_dqn_update(batch: Batch, *, actions: int) -> Call:
    """Double Q with a dueling head and a target network."""
    width = batch["observation"].shape[1]
    parameters = {"torso": _layers((width, 64, 64)), "value": _layers((64, 1)), "advantage": _layers((64, actions))}
    target = jax.tree.map(jnp.copy, parameters)
    optimizer = _optimizer()

    def q_values(parameters: Any, x: Any) -> Any:
        hidden = _mlp(parameters["torso"], x, jax.nn.relu, last=jax.nn.relu)
        advantage = _mlp(parameters["advantage"], hidden)
        return _mlp(parameters["value"], hidden) + advantage - advantage.mean(-1, keepdims=True)

    def objective(parameters: Any, batch: Any) -> Any:
        best = jnp.argmax(q_values(parameters, batch["next_observation"]), -1)
        aim = batch["reward"] + batch["discount"] * _pick(q_values(target, batch["next_observation"]), best)
        error = jax.lax.stop_gradient(aim) - _pick(q_values(parameters, batch["observation"]), batch["action"])
        return jnp.mean(batch["weight"] * optax.losses.huber_loss(error)), error

    def step(kept: Any, batch: Any) -> Any:
        (loss, error), slopes = jax.value_and_grad(objective, has_aux=True)(kept[0], batch)
        return _moved(optimizer, kept, slopes), (loss, error)

    return _repeat(step, (parameters, optimizer.init(parameters)), batch)


def _ppo_parameters(batch: Batch, actions: int) -> Any:
    width = batch["observation"].shape[1]
    parameters = {"policy": _layers((width, 64, 64, actions)), "value": _layers((width, 64, 64, 1))}
    return parameters, _optimizer().init(parameters)


def _ppo_step() -> Callable[[Any, Any], Any]:
    optimizer = _optimizer()

    def objective(parameters: Any, batch: Any) -> Any:
        log_probs = jax.nn.log_softmax(_mlp(parameters["policy"], batch["observation"]))
        ratio = jnp.exp(_pick(log_probs, batch["action"]) - batch["log_prob"])
        clipped = jnp.clip(ratio, 1.0 - SETTINGS["clip_ratio"], 1.0 + SETTINGS["clip_ratio"])
        surrogate = jnp.minimum(ratio * batch["advantage"], clipped * batch["advantage"])
        error = _mlp(parameters["value"], batch["observation"])[:, 0] - batch["return"]
        entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, -1)
        each = SETTINGS["value_coefficient"] * error**2 - surrogate - SETTINGS["entropy_coefficient"] * entropy
        return jnp.sum(each * batch["weight"]) / jnp.sum(batch["weight"])

    def step(kept: Any, batch: Any) -> Any:
        loss, slopes = jax.value_and_grad(objective)(kept[0], batch)
        return _moved(optimizer, kept, slopes), loss

    return step


def _optimizer() -> Any:
    return optax.chain(optax.clip_by_global_norm(MAX_NORM), optax.adam(RATE, eps=1e-5))


def _moved(optimizer: Any, kept: Any, slopes: Any) -> Any:
    moves, slots = optimizer.update(slopes, kept[1], kept[0])
    return optax.apply_updates(kept[0], moves), slots


def _repeat(step: Callable[[Any, Any], Any], kept: Any, batch: Batch) -> Call:
    """Each call goes on from where the last one came to, and waits for the loss."""
    compiled = jax.jit(step, donate_argnums=0)
    state = [kept]

    def run() -> object:
        state[0], told = compiled(state[0], dict(batch))
        return jax.tree.map(np.asarray, told)

    return run


def _layers(sizes: tuple[int, ...]) -> list[tuple[Any, Any]]:
    generator = np.random.default_rng(0)
    pairs = itertools.pairwise(sizes)
    return [(jnp.asarray(generator.normal(0, m**-0.5, (m, n)), jnp.float32), jnp.zeros(n, jnp.float32)) for m, n in pairs]


def _mlp(layers: Any, x: Any, activation: Callable[[Any], Any] = jnp.tanh, last: Callable[[Any], Any] = lambda x: x) -> Any:
    for weight, bias in layers[:-1]:
        x = activation(x @ weight + bias)
    return last(x @ layers[-1][0] + layers[-1][1])


def _pick(x: Any, index: Any) -> Any:
    return jnp.take_along_axis(x, index[:, None], -1)[:, 0]


def _ours(loss: Any, batch: Batch, settings: Mapping[str, float]) -> Call:
    update = build_update(loss, batch_rows=ROWS, optimizer=Adam(epsilon=1e-5), max_grad_norm=MAX_NORM, mode="jax", seed=0)
    if len(batch["observation"]) == ROWS:
        return lambda: update.update(batch, learning_rate=RATE, **settings)
    generator = np.random.default_rng(0)
    return lambda: update.update_many(batch, epochs=1, generator=generator, learning_rate=RATE, **settings)


def main(pace: Pace) -> dict[str, Any]:
    """Microseconds of ours and of the peers."""
    clock, ppo, double_q = SystemClock(), PpoLoss(ppo_policy()), DoubleQLoss(dueling_policy())
    rollout, actions = RolloutPpoLoss(ppo), ppo_policy().actions[0].counts[0]
    one, many, q_batch = batch_of(ppo, rows=ROWS), batch_of(ppo, rows=MINIBATCHES * ROWS), batch_of(double_q, rows=ROWS)
    candidates: dict[str, Call] = {
        "ppo, ours": _ours(ppo, one, SETTINGS),
        "ppo, by hand": plain_ppo_update(one, actions=actions),
        "ppo epoch of 16, ours": _ours(ppo, many, SETTINGS),
        "ppo epoch of 16, by hand": plain_ppo_epoch(many, actions=actions),
        "ppo with gae inside, ours": _ours(rollout, batch_of(rollout, rows=ROWS), SETTINGS),
        "dqn, ours": _ours(double_q, q_batch, {}),
        "dqn, by hand": plain_dqn_update(q_batch, actions=actions),
    }
    for rows in (1, 8, 64):
        observation = one["observation"][:rows].copy()
        candidates[f"act at {rows}, ours"] = build(acting_policy(), apis=["act"], mode="jax", rows=rows).executables["act"].run
        candidates[f"act at {rows}, by hand"] = plain_act(observation, actions=actions)
    return {name: timing.to_json() for name, timing in alternate(candidates, pace=pace, clock=clock).items()}


if __name__ == "__main__":
    print(json.dumps(main(Pace(seconds=0.5, repeats=5)), indent=1))
