"""trajectories: a rollout's rows as they were acted, inside the actor, for a learner that corrects for older weights itself.

    rollout   | s0 s1 s2 FINAL(truncated) s0' s1' |    next observation s2'
    weight      1  1  1  0                1   1   0    rows of weight 0 bootstrap and are not learned from
    continues   1  1  0  0                1   0   0    1 where the next row is the next step of the same episode

A terminated episode needs no row to bootstrap from: its last step has discount 0, and its FINAL row is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.flow.place import calling_place
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch, Flag, Rollout

__all__ = ["rollout_trajectories", "trajectories"]

OBSERVATION, RECURRENT = "observation", "recurrent"
TAKEN = (OBSERVATION, "action", "latent", RECURRENT)


def trajectories(*, discount: float) -> Step[Rollout, Batch]:
    """Rows in time order, environment after environment, with what V-trace needs (Espeholt et al. 2018, section 4.1).

    Gives batches with the columns observation*, action*, latent*, log_prob, reward, `discount` (0 at the last step of an episode that
    terminated), `continues`, `weight`, `begins` (1 at the first row of each environment), `version` (the weights that acted, of each
    row) and, of policies that remember, recurrent* and `first`.
    """
    if not 0 <= discount <= 1:
        raise ConfigError(f"discount of trajectories must be between 0 and 1, got {discount} ({calling_place()})")
    return Step(
        name="trajectories",
        bind=_Trajectories(discount),
        where="actor",
        settings={"discount": discount},
        takes="rollout",
        gives="batch",
    )


def rollout_trajectories(rollout: Rollout, *, discount: float) -> dict[str, npt.NDArray[Any]]:
    """The columns [M, ...] of `rollout`; M is its environment steps, its truncated episodes, and one for each environment that
    does not end in one of these.

    A row of weight 0 repeats the action and `log_prob` of the step before, so that they can be judged.
    """
    rows, offsets = rollout.rows, rollout.offsets
    flags = rows["flags"]
    final = (flags & Flag.FINAL) != 0
    terminated = final & ((flags & Flag.TERMINATED) != 0)
    counts = np.diff(offsets)
    lasts = offsets[1:][counts > 0] - 1
    tails = lasts[~final[lasts] | terminated[lasts]]
    kept = np.flatnonzero(~terminated)
    source = np.concatenate([kept, tails])
    is_tail = np.arange(len(source)) >= len(kept)
    order = np.argsort(2 * source + is_tail, kind="stable")
    source, is_tail = source[order], is_tail[order]
    environment = np.searchsorted(offsets, source, side="right") - 1
    is_step = ~(is_tail | final[source])
    acted = np.where(final[source], np.maximum(source - 1, offsets[environment]), source)
    follows = np.append(is_step[1:] & (environment[1:] == environment[:-1]), False)
    ends = np.append(final[1:], False)
    names = rows.dtype.names or ()
    columns: dict[str, npt.NDArray[Any]] = {}
    for name in names:
        kind = name.split(".", maxsplit=1)[0]
        if kind in TAKEN or name == "log_prob":
            columns[name] = rows[name][source if kind in (OBSERVATION, RECURRENT) else acted]
        if kind == OBSERVATION:
            columns[name][is_tail] = rollout.next_observation[name][environment[is_tail]]
    if any(name.startswith(RECURRENT) for name in columns):
        columns["first"] = (((flags[source] & Flag.FIRST) != 0) & ~is_tail).astype(np.float32)
    before_terminated = np.append(terminated[1:], False)
    before_terminated[lasts] = False
    columns["reward"] = np.where(is_step, rows["reward"][source], np.float32(0)).astype(np.float32)
    columns["discount"] = np.where(is_step & ~before_terminated[source], np.float32(discount), np.float32(0))
    columns["continues"] = (is_step & follows & ~ends[source]).astype(np.float32)
    columns["weight"] = is_step.astype(np.float32)
    columns["begins"] = np.diff(environment, prepend=-1).astype(np.bool_).astype(np.uint8)
    columns["version"] = rows["version"][source]
    return columns


@dataclass(frozen=True, slots=True)
class _Trajectories:
    discount: float

    def __call__(self, side: ActorSide) -> Bound:
        return _BoundTrajectories(side, self.discount).cut


@dataclass(frozen=True, slots=True)
class _BoundTrajectories:
    side: ActorSide
    discount: float

    def cut(self, rollout: Rollout) -> Batch:
        """The rollout as a batch."""
        names = rollout.rows.dtype.names or ()
        if "log_prob" not in names:
            raise SchemaMismatch(
                f"trajectories needs the column 'log_prob'; rows have: {', '.join(names)}. Let the policy give log_prob"
            )
        return Batch(
            columns=rollout_trajectories(rollout, discount=self.discount),
            env_steps=rollout.env_steps,
            version=rollout.version,
            newest_version=rollout.version,
            actor=self.side.actor,
            episodes=rollout.episodes,
        )
