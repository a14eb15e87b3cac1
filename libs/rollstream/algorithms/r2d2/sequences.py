"""From sampled sequences to columns of equal length, with n-step targets.

    item     lead | core rows: n steps and the last row          columns: burn_in + L + 1 rows, cores begin at one of them
               l l | c c c c E                                   . . l l | c c c c E .
                                                                     ^ first: here the state is 0, an episode begins

A lead is shorter than the burn-in only where it reaches the first row of its episode: the state before it is 0, not the stored one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.policies.memory import FIRST, PREFIX
from rollstream.learning import SampledItems
from rollstream.spaces import Flag

__all__ = ["sequence_columns"]


def sequence_columns(
    sample: SampledItems,
    *,
    observation: Sequence[str],
    action: Sequence[str],
    burn_in: int,
    steps: int,
    n_step: int,
    discount: float,
) -> dict[str, npt.NDArray[Any]]:
    """Columns of `SequenceQLoss`, without `weight`.

    Args:
        observation, action: names of columns.
        burn_in, steps: of the rule that cut the items.

    Shapes: observations and first [B, burn_in + steps + 1, ...], recurrent.* [B, S], all others [B, steps].
    """
    rows, flags, begin = sample.rows, sample.rows["flags"], sample.core_start
    lead = sample.lead.astype(np.int64)
    length = sample.lengths.astype(np.int64) - lead - 1
    item = np.arange(len(lead))
    everywhere = np.clip(begin - burn_in + np.arange(burn_in + steps + 1), 0, flags.shape[1] - 1)
    core = everywhere[burn_in:]
    first = ((flags[:, everywhere] & Flag.FIRST) != 0).astype(np.float32)
    short = lead < burn_in
    first[item[short], burn_in - lead[short]] = 1.0
    number = np.arange(steps)
    until = np.minimum(number + n_step, length[:, None])
    valid = number < length[:, None]
    reward_t = rows["reward"][:, core[:-1]] * valid
    gained = np.zeros(reward_t.shape)
    for step in range(min(n_step, steps)):
        inside = number + step < until
        gained += np.where(inside, discount**step * reward_t[:, np.minimum(number + step, steps - 1)], 0.0)
    terminated = (np.take_along_axis(flags[:, core], until, axis=1) & Flag.TERMINATED) != 0
    return {
        **{name: rows[name][:, everywhere] for name in observation},
        **{name: rows[name][:, core[:-1]] for name in action},
        **{name: column[item, begin - lead] for name, column in rows.items() if name.startswith(PREFIX)},
        FIRST: first,
        "reward": gained.astype(np.float32),
        "discount": np.where(valid & ~terminated, discount ** np.maximum(until - number, 0), 0.0).astype(np.float32),
        "bootstrap": until,
        "valid": valid.astype(np.float32),
    }
