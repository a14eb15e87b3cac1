"""Sampled runs of rows as transitions of n steps. Pure: arrays in, new arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.spaces import Flag

__all__ = ["n_step"]


def n_step(
    rows: Mapping[str, npt.NDArray[Any]],
    lengths: npt.NDArray[np.integer[Any]],
    *,
    discount: float,
    lead: npt.NDArray[np.integer[Any]] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Columns of one transition per item: from the first row of its core to its last row, over k = core rows - 1 steps.

    Shapes: rows [B, L, ...] by column, lengths and lead [B] -> columns [B, ...].

    Args:
        rows, lengths, lead: of a `Sample`. Without `lead` every row of an item is core. Lead rows are left out.

    Returns:
        Every column of the first row under its own name (`observation*`, `action*`, what the algorithm added); `reward`: sum of
        discount**j * reward_j for j < k; `discount`: discount**k, or 0 when the last row is a terminal one, for truncation does
        not stop bootstrapping; `next_observation*`: the observations of the last row. All are copies, none shares memory.
    """
    if not {"flags", "reward"} <= set(rows) or not any(_is_observation(name) for name in rows):
        raise SchemaMismatch(f"n_step needs the columns flags, reward and observation; the rows have: {', '.join(rows)}")
    flags = rows["flags"]
    before = np.zeros(len(lengths), np.int64) if lead is None else lead.astype(np.int64)
    core = int(((flags[0] & Flag.PAD) == 0).argmax()) + int(before[0]) if len(lengths) else 0
    steps = lengths.astype(np.int64) - before - 1
    item, first, last = np.arange(len(lengths)), np.full(len(lengths), core), core + steps
    reward_t = rows["reward"][:, core:].astype(np.float64)
    number = np.arange(reward_t.shape[1])
    columns: dict[str, npt.NDArray[Any]] = {
        name: column[item, first] for name, column in rows.items() if name not in ("flags", "version", "reward")
    }
    columns["reward"] = np.where(number < steps[:, None], reward_t * discount**number, 0.0).sum(axis=1).astype(np.float32)
    terminated = (flags[item, last] & Flag.TERMINATED) != 0
    columns["discount"] = np.where(terminated, 0.0, discount**steps).astype(np.float32)
    columns |= {f"next_{name}": column[item, last] for name, column in rows.items() if _is_observation(name)}
    return columns


def _is_observation(name: str) -> bool:
    return name == "observation" or name.startswith("observation.")
