"""What a learner gets: a batch of B items as arrays.

    rows["observation"]   [B, L, ...]     columns of L       lead rows | core rows | PAD
                                                             . . l l l | c c c c . .      mask: True where a letter stands
                                                             l l l l l | c c c c c c
                                                                         ^ `core_start`, the same for every item

Lead rows come before what is learned from (burn-in); they stand left of the core, and all cores begin at one column. Cells without
a row are flagged PAD and zero in every other column.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import SchemaMismatch
from rollstream.replay.samples import SampledItems
from rollstream.spaces import length_name, present_name

if TYPE_CHECKING:
    import torch

    from rollstream.replay.row_fetch import FetchedRows

__all__ = ["ITEM_PREFIX", "Sample"]

ITEM_PREFIX = "item."
"""Before the names of what is known per item, in `torch()` and `jax()`: columns of rows are named by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A batch of B items.

    Attributes:
        keys: u8 [B], to return priorities by.
        probability, priority, times_sampled: [B], when they were drawn.
        table_items: items that could be drawn; N of importance weights.
        lengths: i4 [B], rows of each item, its lead included.
        lead: i4 [B], rows before its core.
        version: u4 [B], of the weights that acted in its newest row.
        lag: i4 [B], newest published version minus `version`.
        age_rows: u4 [B], rows written to its shard since it came.
        weights: f4 [B], importance weights, when they were asked for.
        rows: arrays [B, L, ...] by column, always with `flags` and `version`; under a view the views, [B, ...] or [B, k, ...].
            Views and stacks may share memory with one another; copy what you want to change.
        mask: bool [B, L], where a row is.
    """

    keys: npt.NDArray[np.uint64]
    probability: npt.NDArray[np.float64]
    priority: npt.NDArray[np.float32]
    times_sampled: npt.NDArray[np.int32]
    table_items: int
    lengths: npt.NDArray[np.int32]
    lead: npt.NDArray[np.int32]
    version: npt.NDArray[np.uint32]
    lag: npt.NDArray[np.int32]
    age_rows: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float32] | None = None
    rows: Mapping[str, npt.NDArray[Any]]
    mask: npt.NDArray[np.bool_]

    @staticmethod
    def of(
        items: SampledItems,
        fetched: FetchedRows,
        *,
        newest_version: int,
        weights: npt.NDArray[np.float32] | None = None,
    ) -> Sample:
        """Items and their rows, put together.

        Args:
            newest_version: of the weights, as the shards know it; 0 when nobody said.
        """
        lag = np.maximum(newest_version - items.version.astype(np.int64), 0)
        return Sample(
            keys=items.keys,
            probability=items.probability,
            priority=items.priority,
            times_sampled=items.times_sampled,
            table_items=items.table_items,
            lengths=fetched.lengths,
            lead=fetched.lead,
            version=items.version,
            lag=lag.astype(np.int32),
            age_rows=items.age_rows,
            weights=weights,
            rows=fetched.rows,
            mask=fetched.mask,
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def core_start(self) -> int:
        """The column at which every item's core begins."""
        return int(self.mask[0].argmax()) + int(self.lead[0]) if len(self.keys) else 0

    def part(self, which: slice | npt.NDArray[Any]) -> Sample:
        """Some of the items, of the same table size; a slice copies nothing."""
        taken: dict[str, Any] = {"rows": {name: column[which] for name, column in self.rows.items()}}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name != "rows":
                taken[field.name] = value[which] if isinstance(value, np.ndarray) else value
        return Sample(**taken)

    def mask_of(self, column: str) -> npt.NDArray[np.bool_]:
        """Which entries of a ragged column are there, [B, L, max_n], or in which rows an optional one is, [B, L].

        Raises:
            SchemaMismatch: the column is neither.
        """
        lengths = self.rows.get(length_name(column))
        if lengths is not None:
            entries = np.arange(self.rows[column].shape[lengths.ndim])
            return np.asarray(entries < lengths[..., None])
        present = self.rows.get(present_name(column))
        if present is None:
            raise SchemaMismatch(
                f"column {column!r} has no companion {length_name(column)!r} or {present_name(column)!r} among "
                f"{', '.join(self.rows)}; declare it with rollstream.spaces.ragged or optional"
            )
        return np.asarray(present != 0)

    def torch(self) -> dict[str, torch.Tensor]:
        """Everything as tensors on the CPU that share memory with the arrays.

        Columns of `rows` keep their names; `mask` and what is known per item come as `item.mask`, `item.keys`, `item.lengths`, ...
        Columns of fixed-size bytes come as uint8 with one more axis.
        """
        import torch

        return {name: torch.from_numpy(_writable(array)) for name, array in self._arrays().items()}

    def jax(self) -> dict[str, Any]:
        """Everything as JAX arrays, named as in `torch`.

        `item.keys` stays a NumPy array: JAX would cut its 64 bits to 32 unless told otherwise.
        """
        asarray: Callable[[npt.NDArray[Any]], Any] = importlib.import_module("jax.numpy").asarray
        keys = f"{ITEM_PREFIX}keys"
        return {name: array if name == keys else asarray(array) for name, array in self._arrays().items()}

    def _arrays(self) -> dict[str, npt.NDArray[Any]]:
        arrays = {name: _numbers(column) for name, column in self.rows.items()}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                arrays[f"{ITEM_PREFIX}{field.name}"] = value
        return arrays


def _writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Arrays over received bytes are read-only, which torch cannot express; only the small ones of items are such."""
    return array if array.flags.writeable else array.copy()


def _numbers(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Bytes as numbers; numbers as they are."""
    if column.dtype.kind not in "SV":
        return column
    return column[..., None].view(np.uint8)
