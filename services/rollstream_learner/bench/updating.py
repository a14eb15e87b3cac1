"""Updates of 256 rows: forward, backward, clip, Adam. Our modes beside the plain loop, alone and in epochs of 16 minibatches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.graph import Adam, DoubleQLoss, PpoLoss, Update, build_update, gae
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.losses import Loss
from rollstream.seeding import child_generator
from rollstream_learner.bench.peers.plain_torch import PlainCnnUpdate, PlainDqnUpdate, PlainPpoUpdate
from rollstream_learner.bench.subjects import ROWS, SETTINGS, batch_of, cnn_policy, dueling_policy, ppo_policy
from rollstream_learner.bench.timing import Pace, Timing, alternate

__all__ = ["measure_updates"]

MODES = ("numpy", "torch", "torch-graph", "torch-compile", "jax")
MINIBATCHES = 16
RATE = 3e-4
MAX_NORM = 0.5
DISCOUNT, LAMBDA = 0.99, 0.95


def measure_updates(*, pace: Pace, clock: Clock, say: Callable[[str], None]) -> dict[str, Any]:
    """Microseconds an update, by loss and mode."""
    ppo = _measure_ppo(pace=pace, clock=clock, say=say)
    return {
        "ppo": ppo["one"],
        "ppo_epoch": ppo["epoch"],
        "ppo_with_gae": ppo["gae"],
        "dqn": _measure_dqn(pace=pace, clock=clock, say=say),
        "cnn": _measure_cnn(pace=pace, clock=clock, say=say),
    }


def _measure_ppo(*, pace: Pace, clock: Clock, say: Callable[[str], None]) -> dict[str, Any]:
    loss = PpoLoss(ppo_policy())
    batch = batch_of(loss, rows=ROWS)
    updates = _build(loss, MODES, say=say)
    plain = PlainPpoUpdate(batch)
    one = alternate(
        {
            **{mode: _one(update, batch, SETTINGS) for mode, update in updates.items()},
            "plain torch": plain.step,
        },
        pace=pace,
        clock=clock,
    )
    many = batch_of(loss, rows=ROWS * MINIBATCHES)
    epochs = alternate({mode: _epoch(update, many) for mode, update in updates.items()}, pace=pace, clock=clock)
    with_gae = alternate({mode: _with_gae(update, batch) for mode, update in updates.items()}, pace=pace, clock=clock)
    found = _judged(one, "plain torch")
    if "torch-graph" in one and "jax" in one:
        found["graph_share_of_jax"] = round(one["torch-graph"].p10_us / one["jax"].p10_us, 3)
    return {
        "one": found,
        "epoch": _per_update(epochs, one["plain torch"]),
        "gae": _judged(with_gae, None),
    }


def _per_update(epochs: Mapping[str, Timing], plain: Timing) -> dict[str, Any]:
    """Of an epoch, with its shuffling; the plain loop's step counts without any."""
    found: dict[str, Any] = {mode: {"us_per_update": round(timing.p10_us / MINIBATCHES, 2)} for mode, timing in epochs.items()}
    best = min(found, key=lambda mode: float(found[mode]["us_per_update"]))
    return {**found, "best": best, "speedup": round(plain.p10_us / found[best]["us_per_update"], 3)}


def _measure_dqn(*, pace: Pace, clock: Clock, say: Callable[[str], None]) -> dict[str, Any]:
    loss = DoubleQLoss(dueling_policy())
    batch = batch_of(loss, rows=ROWS)
    updates = _build(loss, MODES, say=say)
    plain = PlainDqnUpdate(batch)
    candidates = {mode: _one(update, batch, {}) for mode, update in updates.items()}
    return _judged(alternate({**candidates, "plain torch": plain.step}, pace=pace, clock=clock), "plain torch")


def _measure_cnn(*, pace: Pace, clock: Clock, say: Callable[[str], None]) -> dict[str, Any]:
    loss = PpoLoss(cnn_policy())
    batch = batch_of(loss, rows=ROWS)
    updates = _build(loss, ("torch", "torch-graph"), say=say)
    plain, compiled = PlainCnnUpdate(batch), PlainCnnUpdate(batch, compiled=True)
    candidates = {mode: _one(update, batch, SETTINGS) for mode, update in updates.items()}
    times = alternate({**candidates, "plain torch": plain.step, "torch.compile": compiled.step}, pace=pace, clock=clock)
    found = _judged(times, "plain torch")
    best_of_plain = min(times[name].p10_us for name in ("plain torch", "torch.compile"))
    return found | {"share_of_plain": round(found["best_us"] / best_of_plain, 3)}


def _build(loss: Loss, modes: tuple[str, ...], *, say: Callable[[str], None]) -> dict[str, Update]:
    found = {}
    for mode in modes:
        try:
            found[mode] = build_update(
                loss,
                batch_rows=ROWS,
                optimizer=Adam(epsilon=1e-5),
                max_grad_norm=MAX_NORM,
                mode=mode,  # type: ignore[arg-type]
                seed=0,
            )
        except ConfigError as error:
            say(f"update of {type(loss).__name__} in mode {mode}: {str(error).splitlines()[0]}")
    return found


def _one(update: Update, batch: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, float]) -> Callable[[], object]:
    return lambda: update.update(batch, learning_rate=RATE, **settings)


def _epoch(update: Update, batch: Mapping[str, npt.NDArray[Any]]) -> Callable[[], object]:
    generator = child_generator(0, "bench", "minibatches")
    settings: dict[str, Any] = SETTINGS
    return lambda: update.update_many(batch, epochs=1, generator=generator, learning_rate=RATE, **settings)


def _with_gae(update: Update, batch: Mapping[str, npt.NDArray[Any]]) -> Callable[[], object]:
    """A rollout of 256 steps of one environment: advantages as an actor computes them, then one update."""
    generator = child_generator(0, "bench", "values")
    value = generator.standard_normal(ROWS + 1).astype(np.float32)
    reward, discount, continues = np.ones(ROWS, np.float32), np.full(ROWS, DISCOUNT, np.float32), np.ones(ROWS, np.float32)
    ops = NumpyOps()

    def run() -> object:
        advantage = gae(ops, reward, discount, value[:-1], value[1:], continues, gae_lambda=LAMBDA)
        columns = {**batch, "advantage": advantage, "return": advantage + value[:-1]}
        return update.update(columns, learning_rate=RATE, **SETTINGS)

    return run


def _judged(times: Mapping[str, Timing], plain: str | None) -> dict[str, Any]:
    ours = {mode: timing for mode, timing in times.items() if mode in MODES}
    best = min(ours, key=lambda mode: ours[mode].p10_us)
    found: dict[str, Any] = {name: timing.to_json() for name, timing in times.items()}
    found |= {"best": best, "best_us": ours[best].p10_us, "best_ms": round(ours[best].p10_us / 1e3, 4)}
    if plain is not None:
        found["speedup"] = round(times[plain].p10_us / ours[best].p10_us, 3)
    return found
