"""Acting: observation in; action, log-probability and value out. Our modes beside plain torch and plain NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.seeding import child_generator
from rollstream_learner.bench.peers.plain_numpy import PlainNumpyActing
from rollstream_learner.bench.peers.plain_torch import PlainActing
from rollstream_learner.bench.subjects import acting_policy, cnn_policy
from rollstream_learner.bench.timing import Pace, Timing, alternate

__all__ = ["measure_acting", "measure_overhead"]

BATCHES = (1, 8, 64)
MODES = ("numpy", "onnx", "torch", "jax")


def measure_acting(*, pace: Pace, clock: Clock) -> dict[str, Any]:
    """Microseconds an `act`, by network and batch; `best` is our fastest mode."""
    return {
        net: {str(rows): _measure(net, policy, rows, pace=pace, clock=clock) for rows in BATCHES}
        for net, policy in (("mlp", acting_policy()), ("cnn", cnn_policy()))
    }


def _measure(net: str, policy: ActorCriticPolicy, rows: int, *, pace: Pace, clock: Clock) -> dict[str, Any]:
    observation = _observation(policy, rows)
    candidates: dict[str, Callable[[], object]] = {}
    for mode in MODES:
        act = _act(policy, mode, rows, observation)
        if act is not None:
            candidates[mode] = act
    plain = PlainActing(net)
    candidates["plain torch, inference mode"] = lambda: plain.act(observation["observation"])
    if net == "mlp":
        by_hand = PlainNumpyActing(rows)
        candidates["plain numpy"] = lambda: by_hand.act(observation["observation"])
    times = alternate(candidates, pace=pace, clock=clock)
    ours = {mode: times[mode] for mode in MODES if mode in times}
    best = min(ours, key=lambda mode: ours[mode].p10_us)
    found: dict[str, Any] = {name: timing.to_json() for name, timing in times.items()}
    found |= {"best": best, "best_us": ours[best].p10_us, "speedup": _ratio(times["plain torch, inference mode"], ours[best])}
    if net == "mlp":
        found["share_of_plain_numpy"] = _ratio(ours["numpy"], times["plain numpy"])
    return found


def measure_overhead(*, pace: Pace, clock: Clock) -> dict[str, Any]:
    """The component tree in mode torch against the same network by hand, forward only: at several batches."""
    return {str(rows): _overhead(rows, pace=pace, clock=clock) for rows in BATCHES}


def _overhead(rows: int, *, pace: Pace, clock: Clock) -> dict[str, Any]:
    policy = acting_policy()
    observation = _observation(policy, rows)
    act, plain = _act(policy, "torch", rows, observation), PlainActing("mlp")
    assert act is not None, "torch is needed for this measurement"
    times = alternate({"component": act, "plain": lambda: plain.act(observation["observation"])}, pace=pace, clock=clock)
    return {
        **{name: timing.to_json() for name, timing in times.items()},
        "share": _ratio(times["component"], times["plain"]),
    }


def _act(policy: ActorCriticPolicy, mode: str, rows: int, observation: Mapping[str, Any]) -> Callable[[], object] | None:
    try:
        acting = build_acting(policy, batch=rows, mode=mode)  # type: ignore[arg-type]
    except ConfigError:  # not installed
        return None
    acting.load(acting.layout.init(0))
    generator = child_generator(0, "bench", "noise")
    return lambda: acting.act(observation, generator)


def _observation(policy: ActorCriticPolicy, rows: int) -> dict[str, Any]:
    leaf = policy.observation[0]
    generator = child_generator(0, "bench", "observation")
    if leaf.dtype == "|u1":
        return {"observation": generator.integers(0, 255, (rows, *leaf.shape)).astype(np.uint8)}
    return {"observation": generator.standard_normal((rows, *leaf.shape)).astype(np.float32)}


def _ratio(above: Timing, below: Timing) -> float:
    return round(above.p10_us / below.p10_us, 3)
