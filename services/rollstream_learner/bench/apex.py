"""The task of one Ape-X actor: 200 steps of 4 environments, n-step returns and TD errors as first priorities (Horgan et al. 2018).

Beside it the bare Gymnasium loop with the same policy, which stores nothing, and RLlib's environment runner, which computes no
priorities. All three step Gymnasium's plain copies one after another (`sync`).
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.acting import Policy
from rollstream.clock import Clock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.errors import ConfigError
from rollstream.graph import QPolicy, build, build_acting
from rollstream.replay import n_step
from rollstream.seeding import child_generator
from rollstream.spaces import Flag, Rollout, row_spec
from rollstream_learner.bench.peers.gymnasium_loop import BareLoop
from rollstream_learner.bench.timing import Pace, alternate

__all__ = ["ApexActor", "measure_apex"]

ENVIRONMENT = "CartPole-v1"
STEPS, ENVS = 200, 4
TURNS = 10
"""Ours and the bare loop run by turns so often in the seconds of one run, since machines change their speed from second to second."""
N_STEP, DISCOUNT, EPSILON = 3, 0.99, 0.1
RLLIB_TIMEOUT_S = 300.0
RLLIB_PEER = Path(__file__).parent / "peers" / "rllib_runner.py"


class ApexActor:
    """Collects a rollout and computes what its rows are worth."""

    def __init__(self, *, clock: Clock) -> None:
        self._environment = make_environment(EnvironmentSpec(id=ENVIRONMENT, vectorization="sync"), envs=ENVS, seed=0, allow=())
        observation, actions = self._environment.observation_leaves, self._environment.action_leaves
        component = QPolicy(observation, actions, dueling=True)
        acting = build_acting(component, batch=ENVS)
        self.policy = Policy(acting=acting, actions=actions, extra=(), generator=child_generator(0, "bench", "apex"))
        weights = acting.layout.init(0)
        self.policy.load(
            _Weights(version=1, tensors={**acting.layout.split(weights), "scalar.epsilon": np.asarray([EPSILON], np.float32)})
        )
        self._collector = Collector(self._environment, row_spec=row_spec(observation, actions), policy=self.policy, clock=clock)
        self._values = build(component, rows=STEPS * ENVS * 2, apis=("q_values",))
        self._values.memory.flat[...] = weights
        self._action, self._observation = actions[0], observation[0]

    def task(self) -> npt.NDArray[np.float32]:
        """One task: its rows' first priorities."""
        rollout = self._collector.collect(STEPS, version=1)
        columns = self._transitions(rollout)
        count = len(columns["reward"])
        values = self._q(np.concatenate([columns[self._observation.name], columns[f"next_{self._observation.name}"]]))
        taken = values[np.arange(count), columns[self._action.name] - self._action.starts[0]]
        wanted = columns["reward"] + columns["discount"] * values[count : 2 * count].max(axis=-1)
        return np.asarray(np.abs(wanted - taken), np.float32)

    def close(self) -> None:
        """End the environments."""
        self._environment.close()

    def _transitions(self, rollout: Rollout) -> dict[str, npt.NDArray[Any]]:
        rows, total = rollout.rows, len(rollout.rows)
        final = (rows["flags"] & Flag.FINAL) != 0
        ends = np.unique(np.concatenate([np.flatnonzero(final), rollout.offsets[1:] - 1]))
        start = np.arange(total)
        last = np.minimum(start + N_STEP, ends[np.searchsorted(ends, start)])
        start, last = start[last > start], last[last > start]
        index = np.minimum(start[:, None] + np.arange(N_STEP + 1), last[:, None])
        chosen = rows[index]
        return n_step({name: chosen[name] for name in rows.dtype.names or ()}, last - start + 1, discount=DISCOUNT)

    def _q(self, observation: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        executable = self._values.executables["q_values"]
        buffer = executable.inputs[self._observation.name]
        buffer[: len(observation)] = observation
        return executable.run()["output"]


class _Weights:
    def __init__(self, *, version: int, tensors: dict[str, npt.NDArray[Any]]) -> None:
        self.version, self.tensors = version, tensors


def measure_apex(*, pace: Pace, clock: Clock, rllib_python: Path | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Environment steps per second of ours, of the bare loop and (when asked for) of RLlib, run in turn."""
    actor, bare = ApexActor(clock=clock), BareLoop(ENVIRONMENT, envs=ENVS)
    try:
        theirs: list[float] = []
        rounds = []
        turn = Pace(seconds=pace.seconds / TURNS, repeats=1)
        loops = {"ours": actor.task, "bare": lambda: bare.run(actor.policy, STEPS)}
        for _ in range(pace.repeats):
            rounds += [alternate(loops, pace=turn, clock=clock) for _ in range(TURNS)]
            if rllib_python is not None:
                theirs.append(_rllib(rllib_python, seconds=pace.seconds))
                say(f"RLlib's runner: {theirs[-1]:,.0f} steps/s")
    finally:
        actor.close()
        bare.close()
    task_us, bare_us = (statistics.median(times[name].median_us for times in rounds) for name in ("ours", "bare"))
    found: dict[str, Any] = {
        "steps_per_s": round(1e6 * STEPS * ENVS / task_us),
        "bare_loop_steps_per_s": round(1e6 * STEPS * ENVS / bare_us),
        "share_of_bare_loop": round(statistics.median(times["bare"].median_us / times["ours"].median_us for times in rounds), 3),
    }
    if theirs:
        found["rllib_steps_per_s"] = round(statistics.median(theirs))
        found["times_rllib"] = round(found["steps_per_s"] / found["rllib_steps_per_s"], 2)
    return found


def _rllib(python: Path, *, seconds: float) -> float:
    command = [str(python), str(RLLIB_PEER), ENVIRONMENT, str(ENVS), str(STEPS), str(N_STEP), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RLLIB_TIMEOUT_S, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ConfigError(f"--rllib-python {python}: RLlib's runner failed: {lines[-1] if lines else done.returncode}")
    return float(json.loads(done.stdout.splitlines()[-1])["steps_per_s"])
