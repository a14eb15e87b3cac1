"""Any Gymnasium `VectorEnv` as a `VectorEnvironment`: sync, async, a registered vector entry point, EnvPool, the user's own.

Which autoreset mode it has stands in its metadata; a mode that is not declared is never guessed. DISABLED is turned into the
convention of SAME_STEP by resetting, after each step, exactly the copies whose episode ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.envs.closing import close_within
from rollstream.envs.faults import USER_ERRORS, environment_fault
from rollstream.envs.vector_environment import FinalObservations, Step
from rollstream.errors import ConfigError, EnvironmentFault
from rollstream.spaces import Columns, Leaf, SpaceLayout

if TYPE_CHECKING:
    import gymnasium

__all__ = ["AutoresetMode", "GymnasiumVector", "InProcess", "Simulator", "autoreset_mode"]

AutoresetMode = Literal["next_step", "same_step", "disabled"]
MODES: Mapping[str, AutoresetMode] = {"NextStep": "next_step", "SameStep": "same_step", "Disabled": "disabled"}


class Simulator(Protocol):
    """The calls of a vector environment, by whatever means they reach it."""

    def reset(self, *, seed: int | list[int] | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]: ...
    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]: ...
    def close(self, *, timeout_s: float) -> None: ...


class InProcess:
    """A vector environment that runs in this process and thread."""

    def __init__(self, vector: gymnasium.vector.VectorEnv[Any, Any, Any], *, name: str) -> None:
        self._vector = vector
        self._name = name
        self.step = vector.step

    def reset(self, *, seed: int | list[int] | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        return self._vector.reset(seed=seed, options=options)  # type: ignore[arg-type]

    def close(self, *, timeout_s: float) -> None:
        close_within(self._vector.close, name=self._name, timeout_s=timeout_s)


def autoreset_mode(metadata: Mapping[str, Any], *, name: str, wanted: str) -> AutoresetMode:
    """What a vector environment does at an episode's end: as it declares, or as the spec says if it declares nothing.

    Raises:
        ConfigError: declared nowhere, unknown, or the spec wants another mode than the environment has.
    """
    declared = metadata.get("autoreset_mode")
    if declared is None:
        if wanted == "auto":
            raise ConfigError(
                f"environment {name!r} does not declare metadata['autoreset_mode'], so where final observations are "
                "is unknown; set environment.autoreset to next_step, same_step or disabled"
            )
        return wanted  # type: ignore[return-value]
    mode = MODES.get(getattr(declared, "value", declared))
    if mode is None:
        raise ConfigError(f"environment {name!r} declares the unknown autoreset mode {declared!r}; known: {', '.join(MODES)}")
    if wanted not in ("auto", mode):
        raise ConfigError(
            f"environment {name!r} resets in mode {mode} and cannot do {wanted}; set environment.autoreset to auto, "
            "or environment.vectorization to sync"
        )
    return mode


class GymnasiumVector:
    """A `VectorEnvironment` over a Gymnasium vector environment; see that protocol for its attributes and methods.

    Args:
        simulator: its calls.
        spaces: its single observation and action space.
        seed: what the first reset is seeded with: one number, one for each copy, or None if it was seeded when built.
        options: Gymnasium's reset options for the resets that are made here: the first, and all in mode DISABLED.
    """

    def __init__(
        self,
        simulator: Simulator,
        *,
        name: str,
        envs: int,
        spaces: tuple[gymnasium.Space[Any], gymnasium.Space[Any]],
        mode: AutoresetMode,
        seed: int | list[int] | None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.envs = envs
        self._batch = (envs,)
        self._simulator = simulator
        self._observations = SpaceLayout(spaces[0], "observation")
        self._actions = SpaceLayout(spaces[1], "action")
        self.observation_leaves: tuple[Leaf, ...] = self._observations.leaves
        self.action_leaves: tuple[Leaf, ...] = self._actions.leaves
        self.resets_on_next_step = mode == "next_step"
        self._mode = mode
        self._seed = seed
        self._options = dict(options or {})
        self._closed = False

    def reset(self, options: Mapping[str, Any] | None = None) -> Columns:
        self._options.update(options or {})
        try:
            seed, self._seed = self._seed, None
            value, _ = self._simulator.reset(seed=seed, options=dict(self._options) or None)
            return self._observations.read(value, batch=self.envs)
        except USER_ERRORS as error:
            raise environment_fault(self.name, "reset", error) from _cause(error)

    def step(self, actions: Columns) -> Step:
        try:
            value, reward, terminated, truncated, infos = self._simulator.step(self._actions.write(actions))
            observation = self._observations.read(value, batch=self.envs)
            reward = self._checked("reward", reward, "fiub")
            terminated = self._checked("terminated", terminated, "b")
            truncated = self._checked("truncated", truncated, "b")
            final = None
            if self._mode != "next_step":
                ended = np.flatnonzero(terminated | truncated)
                if len(ended):
                    if self._mode == "same_step":
                        final = self._final(infos, ended)
                    else:
                        final = FinalObservations(
                            environments=ended, observation={name: column[ended] for name, column in observation.items()}
                        )
                        observation = self._reset_ended(ended)
            return Step(observation=observation, reward=reward, terminated=terminated, truncated=truncated, final=final)
        except USER_ERRORS as error:
            raise environment_fault(self.name, "step", error) from _cause(error)

    def close(self, *, timeout_s: float = 5.0) -> None:
        if not self._closed:
            self._closed = True
            self._simulator.close(timeout_s=timeout_s)

    def _reset_ended(self, ended: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
        mask = np.zeros(self.envs, np.bool_)
        mask[ended] = True
        value, _ = self._simulator.reset(seed=None, options={**self._options, "reset_mask": mask})
        return self._observations.read(value, batch=self.envs)

    def _final(self, infos: Mapping[str, Any], ended: npt.NDArray[np.int64]) -> FinalObservations:
        found = infos.get("final_obs")
        present = infos.get("_final_obs")
        if found is None or (present is not None and not np.asarray(present)[ended].all()):
            raise EnvironmentFault(
                f"copies {ended.tolist()} ended an episode in mode SAME_STEP without infos['final_obs']; "
                "it must hold the last observation of each episode that ended"
            )
        if isinstance(found, np.ndarray) and found.dtype == object:
            each: Sequence[Any] = [found[index] for index in ended]
            return FinalObservations(environments=ended, observation=self._observations.read_each(each))
        columns = self._observations.read(found, batch=self.envs)
        return FinalObservations(environments=ended, observation={name: column[ended] for name, column in columns.items()})

    def _checked(self, key: str, value: Any, kinds: str) -> npt.NDArray[Any]:
        array = value if type(value) is np.ndarray else np.asarray(value)
        if array.shape != self._batch or array.dtype.kind not in kinds:
            raise EnvironmentFault(
                f"{key}: expected {self.envs} {'truth values' if kinds == 'b' else 'numbers'}, got an array of shape "
                f"{list(array.shape)} of {array.dtype}"
            )
        return array


def _cause(error: BaseException) -> BaseException | None:
    """The user's exception; a fault of ours that has one passes its own on."""
    return error.__cause__ or error if isinstance(error, EnvironmentFault) else error
