"""Samples of a table as a PyTorch dataset.

    DataLoader ─▶ worker 0: client 0 ─▶ batch, batch, ...
               ─▶ worker 1: client 1 ─▶ batch, ...          each opens its own connections, after it was forked or spawned

A batch is what `Sample.torch` gives. What goes wrong is raised where batches are taken from: a dataset that is starved says so and
does not end as if there were no more data. This is the one module of the package that imports torch when it is imported;
`rollstream.replay.SampleDataset` loads it when it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from torch.utils.data import IterableDataset, get_worker_info

from rollstream.errors import ConfigError
from rollstream.replay.sample import Sample

__all__ = ["SampleDataset", "SampleSource"]


class SampleSource(Protocol):
    """Whoever gives samples (`TableClient`, `LocalReplay`)."""

    def sample(self, *, batch_items: int, deadline_s: float) -> Sample: ...

    def close(self) -> None: ...


class SampleDataset(IterableDataset[Any]):
    """Batches of a table, drawn when they are taken. Give it to a `DataLoader` with `batch_size=None`, or iterate over it.

    Args:
        open_source: opens a client of the table. It is called in the process that draws, once for each iteration; with workers
            that are spawned it must be importable (a function of a module, `functools.partial` of one).
        batch_items: B of each batch.
        batches: after how many an iteration ends, over all workers together; None: never.
        deadline_s: how long one batch may take.
        transform: what is made of a sample; None: `Sample.torch`, a dictionary of tensors.

    Raises:
        ConfigError: a size that cannot be.
        DeadlineExceeded: while iterating: no batch came in time; says who waits for whom.
    """

    def __init__(
        self,
        open_source: Callable[[], SampleSource],
        *,
        batch_items: int,
        batches: int | None = None,
        deadline_s: float = 60.0,
        transform: Callable[[Sample], Any] | None = None,
    ) -> None:
        if batch_items < 1 or (batches is not None and batches < 1) or not deadline_s > 0:
            raise ConfigError(
                f"SampleDataset needs batch_items >= 1, batches >= 1 or None, and deadline_s > 0, got {batch_items}, {batches} and "
                f"{deadline_s}"
            )
        self._open_source = open_source
        self._batch_items = batch_items
        self._batches = batches
        self._deadline_s = deadline_s
        self._transform = transform

    def __iter__(self) -> Iterator[Any]:
        left = self._share()
        if left == 0:
            return
        source = self._open_source()
        try:
            while left is None or left > 0:
                sample = source.sample(batch_items=self._batch_items, deadline_s=self._deadline_s)
                yield sample.torch() if self._transform is None else self._transform(sample)
                left = None if left is None else left - 1
        finally:
            source.close()

    def _share(self) -> int | None:
        """How many batches this worker gives."""
        worker = get_worker_info()
        if self._batches is None or worker is None:
            return self._batches
        return self._batches // worker.num_workers + (worker.id < self._batches % worker.num_workers)
