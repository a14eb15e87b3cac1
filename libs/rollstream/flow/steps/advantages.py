"""advantages: from a rollout's rows to what a policy-gradient update needs, inside the actor, by the weights that acted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.flow.place import calling_place
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Bound, Step
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import gae
from rollstream.spaces import Batch, Flag, Rollout

__all__ = ["advantages", "rollout_advantages"]

NEEDED = ("reward", "value", "log_prob")
RECURRENT = "recurrent"


def advantages(*, discount: float, gae_lambda: float) -> Step[Rollout, Batch]:
    """Generalized advantage estimation over every rollout. Gives batches with the columns observation*, action*, latent*,
    log_prob, advantage and return (of policies that remember also recurrent*, `first`, and `begins`: a row that does not follow
    the one before), one row per environment step (final observations have served and are left out)."""
    for name, value in (("discount", discount), ("gae_lambda", gae_lambda)):
        if not 0 <= value <= 1:
            raise ConfigError(f"{name} of advantages must be between 0 and 1, got {value} ({calling_place()})")
    return Step(
        name="advantages",
        bind=_Advantages(discount, gae_lambda),
        where="actor",
        settings={"discount": discount, "gae_lambda": gae_lambda},
        takes="rollout",
        gives="batch",
    )


def rollout_advantages(
    rollout: Rollout, bootstrap: npt.NDArray[np.float32], *, discount: float, gae_lambda: float
) -> npt.NDArray[np.float32]:
    """Advantage of each row of `rollout` [R]; meaningless at FINAL rows.

    The value after a row is that of the next row: 0 where that is FINAL and TERMINATED, and the FINAL row's own value where the
    episode was truncated. After an environment's last row it is `bootstrap` [N], the value of the next observation.
    """
    rows, offsets = rollout.rows, rollout.offsets
    flags = rows["flags"]
    final = (flags & Flag.FINAL) != 0
    terminated = final & ((flags & Flag.TERMINATED) != 0)
    value = rows["value"].astype(np.float32)
    last = offsets[1:][np.diff(offsets) > 0] - 1
    next_value = np.append(value[1:], np.float32(0))
    next_value[last] = bootstrap[np.diff(offsets) > 0]
    before_terminated = np.append(terminated[1:], False)
    continues = ~np.append(final[1:], False)
    before_terminated[last] = False
    continues[last] = False
    continues &= ~final
    estimated: npt.NDArray[np.float32] = gae(
        NumpyOps(),
        np.where(final, np.float32(0), rows["reward"]).astype(np.float32),
        np.where(before_terminated, np.float32(0), np.float32(discount)),
        value,
        next_value,
        continues.astype(np.float32),
        gae_lambda=gae_lambda,
    )
    return estimated


@dataclass(frozen=True, slots=True)
class _Advantages:
    discount: float
    gae_lambda: float

    def __call__(self, side: ActorSide) -> Bound:
        return _BoundAdvantages(side, self.discount, self.gae_lambda).estimated


@dataclass(frozen=True, slots=True)
class _BoundAdvantages:
    side: ActorSide
    discount: float
    gae_lambda: float

    def estimated(self, rollout: Rollout) -> Batch:
        """The rollout as a batch with advantages and returns."""
        names = rollout.rows.dtype.names or ()
        for column in NEEDED:
            if column not in names:
                raise SchemaMismatch(
                    f"advantages needs the column {column!r}; rows have: {', '.join(names)}. "
                    "Let the policy give value and log_prob"
                )
        bootstrap = self.side.values(rollout.next_observation, policy=rollout.policy)
        advantage = rollout_advantages(rollout, bootstrap, discount=self.discount, gae_lambda=self.gae_lambda)
        kept = np.flatnonzero((rollout.rows["flags"] & Flag.FINAL) == 0)
        columns = {name: rollout.rows[name][kept] for name in names if _is_input(name)}
        if any(name.startswith(RECURRENT) for name in columns):
            columns["first"] = ((rollout.rows["flags"][kept] & Flag.FIRST) != 0).astype(np.float32)
            environment = np.searchsorted(rollout.offsets, kept, side="right")
            columns["begins"] = np.diff(environment, prepend=-1).astype(np.bool_).astype(np.uint8)
        columns["advantage"] = advantage[kept]
        columns["return"] = advantage[kept] + rollout.rows["value"][kept]
        return Batch(
            columns=columns,
            env_steps=rollout.env_steps,
            version=rollout.version,
            newest_version=rollout.version,
            actor=self.side.actor,
            episodes=rollout.episodes,
        )


def _is_input(name: str) -> bool:
    return name == "log_prob" or name.split(".", maxsplit=1)[0] in ("observation", "action", "latent", RECURRENT)
