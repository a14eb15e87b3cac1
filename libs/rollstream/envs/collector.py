"""Steps a batch of environments with a policy and turns what happened into rows.

    policy.act(observation t) -> action t, extras t        environment.step(action t) -> reward t, end t, observation t + 1

The loop over steps does nothing but copy into buffers; flags, episode ends, checks and rows are made for a whole rollout at
once. Rows are the same for every autoreset mode (see `recording`): FINAL rows have zero action and reward, and extras of the
policy for the final observation, so its value is there for bootstrapping.

Actions are cast to the dtype of the action space here, and stored before the environment sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.envs.constant import ConstantColumns
from rollstream.envs.recording import (
    EpisodeTally,
    ExtraFinals,
    Recording,
    final_flags,
    merged_rows,
    transposed_into,
)
from rollstream.envs.vector_environment import FinalObservations, VectorEnvironment
from rollstream.errors import EnvironmentFault, NonFiniteError, SchemaMismatch
from rollstream.spaces import Columns, Flag, Rollout, RowSpec
from rollstream.spaces.agents import REWARDS, STATUS

__all__ = ["ActingPolicy", "Collector", "EpisodeAware"]

Array = npt.NDArray[Any]


class ActingPolicy(Protocol):
    """What chooses actions."""

    def act(self, observation: Columns) -> Columns:
        """For observations [N, ...]: actions [N, ...] under the names of the action leaves, as the environment takes them
        (a Discrete that starts at 3 gets 3, ...), and every extra column of the row layout [N, ...]."""
        ...


@runtime_checkable
class EpisodeAware(Protocol):
    """An acting policy that wants to know of episodes, since it remembers something of each.

    One that has these methods but needs none of them for now says so by an attribute `follows_episodes` that is false.
    """

    def begin(self, *, first: npt.NDArray[np.bool_], over: npt.NDArray[np.bool_]) -> None:
        """Told before each `act`, [N]: where the observation is the first of an episode, and where it is the last (no action
        counts there)."""
        ...

    def extras(self, observation: Columns) -> Columns:
        """The extra columns for observations [N, ...] that follow the last `act`, and on which nothing is done; nothing of it
        is remembered."""
        ...


class Collector:
    """Collects rollouts of `environment` acted by `policy`, in rows of `row_spec`.

    Starts every copy when made. Observations that the policy sees are views of buffers that the next rollout overwrites.
    After an error it is of no more use: make a new environment and a new collector.

    Attributes:
        policy: what acts; may be replaced between rollouts.
        environment_s: seconds spent inside of environment steps so far; the rest of an actor's time is acting and writing.

    Raises:
        SchemaMismatch: `row_spec` lacks columns of the environment.
    """

    def __init__(self, environment: VectorEnvironment, *, row_spec: RowSpec, policy: ActingPolicy, clock: Clock) -> None:
        self.policy = policy
        self.environment_s = 0.0
        self._environment = environment
        self._row_spec = row_spec
        self._clock = clock
        self._observation = [leaf.name for leaf in environment.observation_leaves]
        self._action = [leaf.name for leaf in environment.action_leaves]
        own = {*self._observation, *self._action, "reward"}
        names = [column.name for column in row_spec.columns]
        if not own <= set(names):
            raise SchemaMismatch(
                f"the row layout lacks columns {sorted(own - set(names))} of environment {environment.name!r}; build it "
                "from this environment's leaves"
            )
        self._extras = [name for name in names if name not in own]
        self._acted = [*self._action, *self._extras]
        self._continuous = [leaf.name for leaf in environment.action_leaves if np.dtype(leaf.dtype).kind == "f"]
        self._recording = self._new_recording(1)
        seen = [name for name in self._observation if name not in (STATUS, REWARDS)]  # ours, and constant for long
        self._constant = ConstantColumns(seen, name=environment.name)
        self._vector_steps = 0
        self.restart()

    def restart(self, options: Mapping[str, Any] | None = None) -> None:
        """Begin a new episode in every copy; those under way are left where they are and count nowhere.

        Args:
            options: reset options from now on, e.g. which task it is.
        """
        envs = self._environment.envs
        self._tally = EpisodeTally(envs=envs)
        self._first = np.ones(envs, np.bool_)
        self._already_final = np.zeros(envs, np.bool_)
        first = self._environment.reset() if options is None else self._environment.reset(options)
        self._latest: dict[str, Array] = {name: column.copy() for name, column in first.items()}
        self._require_finite(self._latest, version=0, step=self._vector_steps)

    def collect(self, steps: int, *, version: int) -> Rollout:
        """Act for `steps` vector steps with weights `version`.

        Raises:
            EnvironmentFault: the environment raised or broke its contract.
            NonFiniteError: it returned a NaN or an infinity, or the policy chose one.
        """
        if self._recording.steps != steps:
            self._recording = self._new_recording(steps)
        recording = self._recording
        _copy(self._latest, recording.observations[0])
        finals: list[tuple[int, FinalObservations, Columns]] = []
        aware, over = self._told_of_episodes(), self._already_final
        observations, now_s = recording.observations, self._clock.monotonic_s
        for step in range(steps):
            try:
                if aware is not None:
                    first, over = self._episodes(recording, step, over)
                    aware.begin(first=first, over=over)
                actions = self._act(recording, step, version)
            except NonFiniteError:
                raise
            except Exception:  # a policy fed with NaN fails in its own way: name the origin instead
                self._require_finite_recording(recording, step, version)
                raise
            start_s = now_s()
            result = self._environment.step(actions)
            self.environment_s += now_s() - start_s
            observation = result.observation
            for name, column in observations[step + 1].items():
                column[...] = observation[name]
            recording.reward[step] = result.reward
            recording.terminated[step] = result.terminated
            recording.truncated[step] = result.truncated
            if result.final is not None:
                extras = self._extras_of(recording.observations[step + 1], result.final)
                finals.append((step, result.final, extras))
        self._require_finite_recording(recording, steps, version)
        self._constant.see(recording.columns, done=recording.terminated | recording.truncated)
        for name in self._extras:
            for step in _broken_steps(recording.columns[name]):
                values = recording.columns[name][step]
                self._refuse(name, values, step=self._vector_steps + step, version=version, who="the policy returned")
        self._vector_steps += steps
        _copy(recording.observations[steps], self._latest)
        if self._environment.resets_on_next_step:
            return self._with_final_steps(recording, version)
        return self._with_extra_finals(recording, finals, version)

    def _new_recording(self, steps: int) -> Recording:
        return Recording(self._row_spec, observation=self._observation, envs=self._environment.envs, steps=steps)

    def _told_of_episodes(self) -> EpisodeAware | None:
        """The policy, if it wants to know of episodes; one whose `follows_episodes` is false is saved the trouble."""
        policy = self.policy
        return policy if isinstance(policy, EpisodeAware) and getattr(policy, "follows_episodes", True) else None

    def _episodes(
        self, recording: Recording, step: int, over: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Where the observation of `step` is the first of an episode, and where the last; `over`: the latter a step before."""
        if step == 0:
            return self._first, self._already_final
        done = recording.terminated[step - 1] | recording.truncated[step - 1]
        return (over, done & ~over) if self._environment.resets_on_next_step else (done, np.zeros_like(done))

    def _act(self, recording: Recording, step: int, version: int) -> Columns:
        """Ask the policy, store its answer, and return the actions in the environment's dtypes."""
        answer = self.policy.act(recording.observations[step])
        view = recording.views[step]
        as_stored = True
        for name in self._acted:
            value, place = answer.get(name), view[name]
            if value is None or value.shape != place.shape:
                raise _wrong_answer(name, value, place)
            if value.dtype == place.dtype:
                place[...] = value
            elif _stored(value, place):
                as_stored = False
            else:
                raise _wrong_answer(name, value, place)
        for name in self._continuous:
            if not np.isfinite(view[name]).all():
                self._refuse(name, view[name], step=self._vector_steps + step, version=version, who="the policy chose")
        if as_stored:
            return answer if len(answer) == len(self._action) else {name: answer[name] for name in self._action}
        return {name: answer[name] if answer[name].dtype == view[name].dtype else view[name].copy() for name in self._action}

    def _extras_of(self, current: Mapping[str, Array], final: FinalObservations) -> Columns:
        """Extras of the policy for final observations [K]; asked with the whole batch, whose size is fixed."""
        if not self._extras:
            return {}
        observation = {name: column.copy() for name, column in current.items()}
        for name, column in final.observation.items():
            observation[name][final.environments] = column
        answer = self.policy.extras(observation) if isinstance(self.policy, EpisodeAware) else self.policy.act(observation)
        return {name: np.array(answer[name][final.environments]) for name in self._extras}

    def _with_final_steps(self, recording: Recording, version: int) -> Rollout:
        """Rows where the step on a final observation is the FINAL row."""
        steps = recording.steps
        done = recording.terminated | recording.truncated
        ignored = np.concatenate([self._already_final[None], done[:-1]])
        self._require_conforming(recording, ignored & (done | (recording.reward != 0.0)))
        dense = self._dense(recording, version)
        flags = np.zeros_like(done, np.uint8)
        flags[1:] = final_flags(recording.terminated[:-1], recording.truncated[:-1])
        flags[1:][ignored[:-1]] |= np.uint8(Flag.FIRST)
        flags[0][self._first] |= np.uint8(Flag.FIRST)
        dense["flags"] = flags.T
        self._blank(dense, ignored.T)
        ended = np.flatnonzero(done[-1])
        last = FinalObservations(
            environments=ended,
            observation={name: recording.observations[steps][name][ended] for name in self._observation},
        )
        extras = self._extras_of(recording.observations[steps], last) if len(ended) else {}
        finals = [(steps - 1, last, extras)] if len(ended) else []
        skipped = self._already_final
        self._already_final = done[-1].copy()
        self._first = ignored[-1] & ~done[-1]
        return self._rollout(recording, dense, finals, skipped=skipped, live=~ignored, done=done, version=version)

    def _with_extra_finals(
        self, recording: Recording, finals: list[tuple[int, FinalObservations, Columns]], version: int
    ) -> Rollout:
        """Rows where final observations came beside the steps."""
        done = recording.terminated | recording.truncated
        for step, final, _ in finals:
            self._require_finite(final.observation, version=version, step=self._vector_steps - recording.steps + step)
        dense = self._dense(recording, version)
        dense["flags"] = np.concatenate([self._first[None], done[:-1]]).T.astype(np.uint8) * np.uint8(Flag.FIRST)
        self._first = done[-1].copy()
        none = np.zeros(self._environment.envs, np.bool_)
        return self._rollout(recording, dense, finals, skipped=none, live=np.ones_like(done), done=done, version=version)

    def _dense(self, recording: Recording, version: int) -> npt.NDArray[np.void]:
        """Rows [N, T], one for each step, still without flags."""
        rows = np.empty((self._environment.envs, recording.steps), self._row_spec.dtype)
        rows["version"] = version
        rows["reward"] = recording.reward.T
        transposed_into(rows, recording.columns, steps=recording.steps)
        return rows

    def _blank(self, rows: npt.NDArray[np.void], where: npt.NDArray[np.bool_]) -> None:
        """FINAL rows have no action and no reward."""
        if where.any():
            for name in (*self._action, "reward"):
                rows[name][where] = 0

    def _rollout(
        self,
        recording: Recording,
        dense: npt.NDArray[np.void],
        finals: list[tuple[int, FinalObservations, Columns]],
        *,
        skipped: npt.NDArray[np.bool_],
        live: npt.NDArray[np.bool_],
        done: npt.NDArray[np.bool_],
        version: int,
    ) -> Rollout:
        extra = _joined(finals)
        rows = np.zeros(len(extra.step), self._row_spec.dtype)
        rows["version"] = version
        rows["flags"] = final_flags(
            recording.terminated[extra.step, extra.environment], recording.truncated[extra.step, extra.environment]
        )
        for name, column in extra.columns.items():
            rows[name] = column
        merged, offsets = merged_rows(dense, rows, at=extra, skipped=skipped)
        return Rollout(
            rows=merged,
            offsets=offsets,
            next_observation={name: column.copy() for name, column in self._latest.items()},
            version=version,
            env_steps=int(live.sum()),
            episodes=self._tally.add(recording.reward, live, done),
        )

    def _require_conforming(self, recording: Recording, broken: npt.NDArray[np.bool_]) -> None:
        if broken.any():
            step, copy = (int(index) for index in np.argwhere(broken)[0])
            raise EnvironmentFault(
                f"environment {self._environment.name!r} is said to reset in mode NEXT_STEP, but the step of copy {copy} "
                f"after an episode's end returned reward {recording.reward[step, copy]:g} or ended again; set "
                "environment.autoreset (or its metadata['autoreset_mode']) to what it does"
            )

    def _require_finite_recording(self, recording: Recording, steps: int, version: int) -> None:
        with np.errstate(over="ignore"):
            reward = recording.reward[:steps].astype(np.float32)  # as rows hold it
        for step in _broken_steps(reward):
            self._refuse("reward", reward[step], step=self._vector_steps + step, version=version)
        for name in self._observation:
            for step in _broken_steps(recording.columns[name][1 : steps + 1]):
                self._refuse(name, recording.columns[name][step + 1], step=self._vector_steps + step, version=version)

    def _require_finite(self, columns: Columns, *, version: int, step: int = 0) -> None:
        for name, column in columns.items():
            if column.dtype.kind == "f" and not np.isfinite(column).all():
                self._refuse(name, column, step=step, version=version)

    def _refuse(self, name: str, values: Array, *, step: int, version: int, who: str = "it returned") -> None:
        """Raise `NonFiniteError` for the first bad entry of `values` [N, ...]."""
        where = tuple(int(index) for index in np.argwhere(~np.isfinite(values))[0])
        raise NonFiniteError(
            f"environment {self._environment.name!r}: {who} {values[where]} as {name}{list(where[1:]) or ''} of copy "
            f"{where[0]} at vector step {step}, acted by weights version {version}; only finite numbers can be learned from"
        )


def _stored(value: Array, into: Array) -> bool:
    """Copy `value`, unless the cast would do more than round."""
    if not np.can_cast(value.dtype, into.dtype, "same_kind") and (value.dtype.kind not in "biu" or into.dtype.kind not in "iu"):
        return False
    into[...] = value
    return True


def _wrong_answer(name: str, value: Array | None, expected: Array) -> SchemaMismatch:
    got = "nothing" if value is None else f"{value.dtype}{list(value.shape)}"
    return SchemaMismatch(
        f"the policy must return column {name!r} as {expected.dtype}{list(expected.shape)} for each batch, got {got}"
    )


def _broken_steps(values: Array) -> list[int]:
    """First step [T, ...] with a NaN or an infinity, as a list of at most one."""
    if values.dtype.kind != "f":
        return []
    finite = np.isfinite(values)
    if finite.all():
        return []
    return [int(np.argmin(finite.reshape(len(values), -1).all(axis=1)))]


def _copy(source: Columns, target: Mapping[str, Array]) -> None:
    for name, column in target.items():
        column[...] = source[name]


def _joined(finals: list[tuple[int, FinalObservations, Columns]]) -> ExtraFinals:
    if not finals:
        return ExtraFinals(step=np.zeros(0, np.int64), environment=np.zeros(0, np.int64), columns={})
    parts = [{**final.observation, **extras} for _, final, extras in finals]
    return ExtraFinals(
        step=np.concatenate([np.full(len(final.environments), step) for step, final, _ in finals]),
        environment=np.concatenate([final.environments for _, final, _ in finals]),
        columns={name: np.concatenate([part[name] for part in parts]) for name in parts[0]},
    )
