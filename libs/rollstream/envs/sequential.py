"""Plain single environments, stepped one after another in this process: no vectorizer between the user's code and the rows.

The copy that ends an episode is reset at once; its final observation is kept beside the first one of the next episode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rollstream.envs.closing import close_within
from rollstream.envs.faults import USER_ERRORS, environment_fault
from rollstream.envs.vector_environment import FinalObservations, Step
from rollstream.errors import EnvironmentFault
from rollstream.spaces import Columns, Leaf, SpaceLayout

if TYPE_CHECKING:
    import gymnasium

__all__ = ["SequentialEnvironments"]


class SequentialEnvironments:
    """A `VectorEnvironment` over N environments that `build` makes; see that protocol for its attributes and methods.

    Args:
        seeds: seed of each copy's first reset.
        options: Gymnasium's reset options, passed at every reset.
    """

    def __init__(
        self,
        build: Callable[[], gymnasium.Env[Any, Any]],
        *,
        name: str,
        seeds: Sequence[int],
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.envs = len(seeds)
        self._seeds: list[int | None] = list(seeds)
        self._options = dict(options or {})
        self._copies: list[gymnasium.Env[Any, Any]] = [build() for _ in seeds]
        self._observations = SpaceLayout(self._copies[0].observation_space, "observation")
        self._actions = SpaceLayout(self._copies[0].action_space, "action")
        self.observation_leaves: tuple[Leaf, ...] = self._observations.leaves
        self.action_leaves: tuple[Leaf, ...] = self._actions.leaves
        self.resets_on_next_step = False
        self._reward = np.zeros(self.envs, np.float64)
        self._terminated = np.zeros(self.envs, np.bool_)
        self._truncated = np.zeros(self.envs, np.bool_)
        self._closed = False

    def reset(self, options: Mapping[str, Any] | None = None) -> Columns:
        self._options.update(options or {})
        seeds, self._seeds = self._seeds, [None] * self.envs
        return self._read([self._reset(index, seed=seed) for index, seed in enumerate(seeds)], "reset")

    def step(self, actions: Columns) -> Step:
        current: list[Any] = []
        finals: list[dict[str, Any]] = []
        ended: list[int] = []
        for index, copy in enumerate(self._copies):
            try:
                observation, reward, terminated, truncated, _ = copy.step(self._actions.write_one(actions, index))
                self._reward[index] = reward
                self._terminated[index] = terminated
                self._truncated[index] = truncated
            except USER_ERRORS as error:
                raise environment_fault(self.name, "step", error, environment=index) from error
            if terminated or truncated:
                ended.append(index)
                finals.append(self._read([observation], "step"))  # a copy: reset may reuse the user's buffer
                observation = self._reset(index, seed=None)
            current.append(observation)
        final = None
        if ended:
            final = FinalObservations(
                environments=np.asarray(ended, np.int64),
                observation={name: np.concatenate([one[name] for one in finals]) for name in finals[0]},
            )
        return Step(
            observation=self._read(current, "step"),
            reward=self._reward,
            terminated=self._terminated,
            truncated=self._truncated,
            final=final,
        )

    def close(self, *, timeout_s: float = 5.0) -> None:
        if not self._closed:
            self._closed = True
            close_within(self._close_copies, name=self.name, timeout_s=timeout_s)

    def _reset(self, index: int, *, seed: int | None) -> Any:
        try:
            return self._copies[index].reset(seed=seed, options=dict(self._options) or None)[0]
        except USER_ERRORS as error:
            raise environment_fault(self.name, "reset", error, environment=index) from error

    def _read(self, values: Sequence[Any], call: str) -> dict[str, Any]:
        try:
            return self._observations.read_each(values)
        except EnvironmentFault as error:
            raise environment_fault(self.name, call, error) from error

    def _close_copies(self) -> None:
        errors: list[BaseException] = []
        for copy in self._copies:
            try:
                copy.close()
            except USER_ERRORS as error:
                errors.append(error)
        if errors:
            raise errors[0]
