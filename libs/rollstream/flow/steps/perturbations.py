"""perturbations: an actor plays whole episodes with weights to both sides of the newest ones, and tells what they were worth.

place of noise ─▶ weights + deviation * noise ─▶ one episode in every copy ─▶ mean return
              ╰─▶ weights - deviation * noise ─▶ one episode in every copy ─▶ mean return     [place, (return, return)] travels
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.flow.node import require_at_least
from rollstream.flow.place import calling_place
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Step
from rollstream.flow.steps.noise_table import NoiseTable
from rollstream.graph.declare import declare
from rollstream.graph.memory import Memory
from rollstream.graph.modes.observer import Observer
from rollstream.spaces import Batch, Episodes, Flag, Rollout

__all__ = ["Searched", "perturbations"]

OBSERVER_ROWS = 256


class Searched(Protocol):
    """What the step needs of an agent: a policy whose parameters are perturbed, and the noise that all share."""

    @property
    def policy(self) -> Any: ...

    @property
    def noise(self) -> NoiseTable: ...


def perturbations(*, pairs: int, deviation: float, steps: int, episode_steps: int) -> Step[None, Batch]:
    """For `actors.generate`: evaluate `pairs` antithetic pairs of weights (Salimans et al. 2017, algorithm 2; Mania et al. 2018).

    Gives `noise_place` int64 [M], `returns` float32 [M, 2] (undiscounted, the mean over the environments' copies), and, for a policy
    that normalizes observations, `seen` [M, S]: the statistics of what each pair saw, in the layout of the policy's state.

    Args:
        deviation: of the noise added to each parameter.
        steps: vector steps at a time; copies whose episode is over go on until all are, or to the end of these.
        episode_steps: an episode is cut here, and counts for what it has got.
    """
    for name, value in (("pairs", pairs), ("steps", steps), ("episode_steps", episode_steps)):
        require_at_least(1, value, what=f"{name} of perturbations")
    if not deviation > 0:
        raise ConfigError(f"deviation of perturbations must be > 0, got {deviation} ({calling_place()})")
    return Step(
        name="perturbations",
        bind=_Perturbing(pairs, deviation, steps, episode_steps),
        where="actor",
        settings={"pairs": pairs, "deviation": deviation, "steps": steps, "episode_steps": episode_steps},
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _Perturbing:
    pairs: int
    deviation: float
    steps: int
    episode_steps: int

    def __call__(self, side: ActorSide) -> _Search:
        return _Search(side, self)


@dataclass(slots=True)
class _Played:
    """What one pair of weights came to so far."""

    env_steps: int = 0
    episodes: list[Episodes] = field(default_factory=list)


class _Search:
    def __init__(self, side: ActorSide, settings: _Perturbing) -> None:
        self._side = side
        self._settings = settings
        agent: Searched = side.agent
        self._noise = agent.noise
        declared = declare(agent.policy)
        self._layout = declared.layout
        self._state = Memory(
            layout=declared.layout,
            flat=np.zeros(declared.layout.size, np.float32),
            state_layout=declared.state_layout,
            state=declared.state_layout.init(0),
        )
        self._observer = Observer(agent.policy, memory=self._state, rows=OBSERVER_ROWS) if declared.state_layout.size else None

    def __call__(self, nothing: None) -> Batch:
        side, size = self._side, self._layout.size
        version = side.pull()
        published = side.tensors()
        middle = self._layout.join({name: published[name] for name in self._layout.names})
        kept = {name: published[name] for name in self._state.state_layout.names}
        generator = side.generator("perturbations")
        played, places, returns, seen = _Played(), [], [], []
        for _ in range(self._settings.pairs):
            place = self._noise.draw(generator, size=size)
            step = np.float32(self._settings.deviation) * self._noise.at(place, size=size)
            self._state.state[...] = self._state.state_layout.init(0)
            both = []
            for weights in (middle + step, middle - step):
                side.act_with({**self._layout.split(weights), **kept})
                both.append(self._play(played))
            places.append(place)
            returns.append(both)
            seen.append(self._state.state.copy())
        columns: dict[str, npt.NDArray[Any]] = {
            "noise_place": np.asarray(places, np.int64),
            "returns": np.asarray(returns, np.float32),
        }
        if self._observer is not None:
            columns["seen"] = np.stack(seen)
        return Batch(
            columns=columns,
            env_steps=played.env_steps,
            version=version,
            newest_version=version,
            episodes=Episodes.concatenate(played.episodes),
        )

    def _play(self, played: _Played) -> float:
        """One episode in every copy by the weights that act; the mean of their returns."""
        side, limit = self._side, self._settings.episode_steps
        side.restart()
        gone, first = 0, _FirstEpisodes()
        while not first.over and gone < limit:
            steps = min(self._settings.steps, limit - gone)
            rollout = side.collect(steps=steps, pull=False)
            gone += steps
            played.env_steps += rollout.env_steps
            first.add(rollout)
            if self._observer is not None:
                self._observer.observe({name: rollout.rows[name] for name in rollout.rows.dtype.names or ()})
        played.episodes.append(first.ended())
        return float(first.returns.mean())


class _FirstEpisodes:
    """The first episode of every copy since a restart; what copies do afterwards does not count."""

    def __init__(self) -> None:
        self.returns = np.zeros(0)
        self.lengths = np.zeros(0, np.int64)
        self._over = np.zeros(0, np.bool_)

    @property
    def over(self) -> bool:
        return bool(len(self._over)) and bool(self._over.all())

    def add(self, rollout: Rollout) -> None:
        envs = len(rollout.offsets) - 1
        if not len(self._over):
            self.returns, self.lengths, self._over = np.zeros(envs), np.zeros(envs, np.int64), np.zeros(envs, np.bool_)
        final = (rollout.rows["flags"] & Flag.FINAL) != 0
        for copy in np.flatnonzero(~self._over):
            start, stop = int(rollout.offsets[copy]), int(rollout.offsets[copy + 1])
            ends = np.flatnonzero(final[start:stop])
            stop = start + int(ends[0]) if len(ends) else stop
            self.returns[copy] += float(rollout.rows["reward"][start:stop].sum(dtype=np.float64))
            self.lengths[copy] += stop - start
            self._over[copy] = bool(len(ends))

    def ended(self) -> Episodes:
        """Those that came to their end."""
        return Episodes(returns=self.returns[self._over], lengths=self.lengths[self._over])
