"""One update, several processes of this machine: what a learner has instead of an `Update` when it shares its work.

    learner = rank 0:  update(rows) ── rows 0, 2, 4 ... ──▶ its own Update ──╮
                            ╰─ pipe ── rows 1, 3, 5 ... ──▶ Update of rank 1 ┴ all-reduce: equal weights on all

Each rank takes every n-th row of what it is given, so a minibatch is the same number of rows of each. Where they do not come out even,
rows are repeated with weight 0. Commands go to the others as JSON and safetensors. The others end with the learner, and when
it lets go of this object.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load, save

from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.graph.backends.torch.parallel import RankGroup
from rollstream.graph.losses.loss import Loss
from rollstream.spaces import Columns

__all__ = ["SharedUpdate"]

WEIGHT = "weight"
SEED = 2**31


class SharedUpdate:
    """The methods of `rollstream.graph.Update` that algorithms use, over `ranks` processes.

    Args:
        build: `build_update`, whose arguments `further` are.
        batch_rows: rows of a minibatch over all ranks; a multiple of their number.
        backend: `gloo`; `nccl` on GPUs, where rank r takes device `cuda:r`.

    Raises:
        ConfigError: `batch_rows` cannot be shared out.
        DeadlineExceeded: a rank did not start, or died; names it.
    """

    def __init__(
        self,
        build: Callable[..., Any],
        loss: Loss,
        *,
        ranks: int,
        batch_rows: int,
        backend: str = "gloo",
        deadline_s: float = 120.0,
        **further: Any,
    ) -> None:
        if batch_rows % ranks:
            raise ConfigError(
                f"a minibatch of {batch_rows} rows cannot be shared by {ranks} learner_ranks; use a multiple of {ranks} rows"
            )
        self._ranks = ranks
        self._rows = batch_rows
        folder = tempfile.TemporaryDirectory(prefix="rollstream-ranks-")
        meeting = str(Path(folder.name) / "meeting")
        groups = [
            RankGroup(rank=rank, count=ranks, meeting=meeting, backend=backend, deadline_s=deadline_s) for rank in range(ranks)
        ]
        spawn = multiprocessing.get_context("spawn")
        pipes = [spawn.Pipe() for _ in groups[1:]]
        processes: list[BaseProcess] = []
        arguments = {**further, "batch_rows": batch_rows // ranks}
        for group, (_, theirs) in zip(groups[1:], pipes, strict=True):
            process = spawn.Process(target=_serve, args=(theirs, group, build, loss, arguments), daemon=True)
            process.start()
            theirs.close()
            processes.append(process)
        self._others = [ours for ours, _ in pipes]
        self._group = groups[0]
        self.end = weakref.finalize(self, _end, self._others, processes, groups[0], folder)
        self._group.join()
        self._own = build(loss, **_on_device(arguments, groups[0]), ranks=groups[0])

    def __getattr__(self, name: str) -> Any:
        """What does not change anything is rank 0's: `tensors`, `parameters`, `state`, `mode`, `report`, ..."""
        if name in ("gradient", "apply"):
            raise ConfigError(f"an update shared by {self._ranks} learner_ranks has no {name} of its own; use learner_ranks=1")
        return getattr(self._own, name)

    def update(self, batch: Columns, *, learning_rate: float, **scalars: float) -> Any:
        """As `Update.update`: exactly `batch_rows` rows; `outputs` are in their order."""
        self._tell("update", self._shares(batch), {"learning_rate": learning_rate, **scalars})
        result = self._own.update(_every(batch, 0, self._ranks), learning_rate=learning_rate, **scalars)
        parts = [result.outputs, *(load(self._answer(other)) for other in self._others)]
        outputs = {name: np.stack([part[name] for part in parts], axis=1) for name in result.outputs}
        return type(result)(
            metrics=result.metrics,
            outputs={name: column.reshape(-1, *column.shape[2:]) for name, column in outputs.items()},
        )

    def update_many(
        self, columns: Columns, *, epochs: int, generator: np.random.Generator, learning_rate: float, **scalars: float
    ) -> dict[str, float]:
        """As `Update.update_many`: each rank shuffles its own share of the rows."""
        whole = _even(columns, self._ranks)
        seeds = generator.integers(SEED, size=self._ranks).tolist()
        settings: dict[str, Any] = {"epochs": epochs, "learning_rate": learning_rate, **scalars}
        self._tell("update_many", self._shares(whole), settings, seeds=seeds[1:])
        metrics: dict[str, float] = self._own.update_many(
            _every(whole, 0, self._ranks), generator=np.random.default_rng(seeds[0]), **settings
        )
        return metrics

    def observe(self, columns: Columns) -> None:
        """As `Update.observe`: all ranks see all rows, so their statistics stay equal."""
        self._tell("observe", [columns] * len(self._others))
        self._own.observe(columns)

    def sync_target(self, *, share: float = 1.0) -> None:
        """As `Update.sync_target`, on all ranks."""
        self._tell("sync_target", [{}] * len(self._others), {"share": share})
        self._own.sync_target(share=share)

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """As `Update.load_state`, on all ranks."""
        self._own.load_state(state)
        self._tell("load_state", [state] * len(self._others))

    def require_equal(self) -> None:
        """Raise `ConfigError` that names the ranks whose parameters differ from those of rank 0."""
        self._tell("require_equal", [{}] * len(self._others))
        self._group.require_equal(self._own.parameters())

    def _shares(self, columns: Columns) -> list[Columns]:
        return [_every(columns, rank, self._ranks) for rank in range(1, self._ranks)]

    def _tell(
        self,
        what: str,
        columns: Sequence[Columns],
        settings: Mapping[str, float] = MappingProxyType({}),
        *,
        seeds: Sequence[int] = (),
    ) -> None:
        for number, (other, given) in enumerate(zip(self._others, columns, strict=True)):
            seed = {"seed": seeds[number]} if seeds else {}
            try:
                other.send_bytes(json.dumps({"do": what, **seed, "settings": dict(settings)}).encode())
                other.send_bytes(save({name: np.ascontiguousarray(column) for name, column in given.items()}))
            except OSError as error:
                raise self._gone(number + 1) from error

    def _answer(self, other: Connection) -> bytes:
        try:
            return other.recv_bytes()
        except (EOFError, OSError) as error:
            raise self._gone(self._others.index(other) + 1) from error

    def _gone(self, rank: int) -> DeadlineExceeded:
        return DeadlineExceeded(
            f"rank {rank} of {self._ranks} of the learner has ended; see its error above, the learner goes on from its checkpoint"
        )


def _even(columns: Columns, ranks: int) -> Columns:
    """`columns` with rows repeated at weight 0 until their number is a multiple of `ranks`."""
    rows = len(next(iter(columns.values())))
    missing = -rows % ranks
    if not missing:
        return columns
    index = np.minimum(np.arange(rows + missing), rows - 1)
    weight = np.asarray(columns.get(WEIGHT, np.ones(rows, np.float32)))[index].copy()
    weight[rows:] = 0
    return {**{name: column[index] for name, column in columns.items()}, WEIGHT: weight}


def _every(columns: Columns, rank: int, ranks: int) -> Columns:
    return {name: column[rank::ranks] for name, column in columns.items()}


def _on_device(arguments: Mapping[str, Any], group: RankGroup) -> dict[str, Any]:
    """Each rank has a GPU of its own."""
    return {**arguments, "device": f"cuda:{group.rank}"} if group.backend == "nccl" else dict(arguments)


def _serve(pipe: Connection, group: RankGroup, build: Callable[..., Any], loss: Loss, arguments: Mapping[str, Any]) -> None:
    """A rank at work, until the learner lets go of it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the learner, which must still save
    group.join()
    update = build(loss, **_on_device(arguments, group), ranks=group)
    with suppress(EOFError):
        while True:
            order = json.loads(pipe.recv_bytes())
            columns = load(pipe.recv_bytes())
            _obey(update, group, pipe, order, columns)


def _obey(update: Any, group: RankGroup, pipe: Connection, order: Mapping[str, Any], columns: Columns) -> None:
    what, settings = order["do"], order["settings"]
    if what == "update":
        pipe.send_bytes(save(update.update(columns, **settings).outputs))
    elif what == "update_many":
        update.update_many(columns, generator=np.random.default_rng(order["seed"]), **settings)
    elif what == "observe":
        update.observe(columns)
    elif what == "load_state":
        update.load_state(columns)
    elif what == "sync_target":
        update.sync_target(**settings)
    else:
        group.require_equal(update.parameters())


def _end(others: Sequence[Connection], processes: Sequence[BaseProcess], group: RankGroup, folder: Any) -> None:
    for pipe in others:
        pipe.close()
    for process in processes:
        process.kill()
        process.join()
    group.leave()
    folder.cleanup()
