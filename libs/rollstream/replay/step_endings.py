"""Which episodes end with a step, how, and what their final observations are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.replay.step_layout import StepLayout, entries_of

__all__ = ["Ending", "Mask", "Steps", "ending_of"]

Mask: TypeAlias = npt.NDArray[np.bool_] | Sequence[bool]
Steps: TypeAlias = Mapping[str, Any]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Environments [K] whose episodes end, how, and their final columns [K, ...], where they are known."""

    env: Ints
    terminated: npt.NDArray[np.bool_]
    final: Steps | None


def ending_of(
    terminated: Mask | None,
    truncated: Mask | None,
    final: Steps | None,
    *,
    which: Ints | None,
    environments: int,
    layout: StepLayout,
) -> Ending | None:
    """What ends with a step of all environments, or of `which` [K]; None: nothing does.

    Raises:
        SchemaMismatch: masks or final columns do not fit.
    """
    given = [np.asarray(mask, np.bool_) for mask in (terminated, truncated) if mask is not None]
    if not any(mask.any() for mask in given):
        return None
    env = np.arange(environments) if which is None else which
    masks = [np.zeros(len(env), np.bool_) if mask is None else np.asarray(mask, np.bool_) for mask in (terminated, truncated)]
    for number, mask in enumerate(masks):
        if len(mask) not in (len(env), environments):
            raise SchemaMismatch(f"terminated and truncated have one entry for each of {len(env)} environments, got {len(mask)}")
        if len(mask) != len(env):
            masks[number] = mask[env]
    over = np.flatnonzero(masks[0] | masks[1])
    if not len(over):
        return None
    columns = None
    if final is not None:
        columns = layout.read(entries_of(final, env[over], environments=environments, place=over), count=len(over))
    return Ending(env=env[over], terminated=masks[0][over], final=columns)
