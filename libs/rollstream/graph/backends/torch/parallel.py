"""Several processes that share one learner's updates: each computes the gradient of its own rows, and all apply the same mean.

    rank 0: rows --> backward --> packed --.                   .--> clip, optimizer
    rank 1: rows --> backward --> packed ---+-- all-reduce --> +--> clip, optimizer      the same weights on all, bit for bit

One vector per update goes over the wire (see `program`: gradient, metrics, loss, rows), and the mean is weighted by rows. All ranks must
make the same number of updates. A rank that is dead, absent or late ends the others with an error that names it: before they give up
they say in the common store that they are alive, so who is silent there is the one.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch import distributed as dist

from rollstream.clock import Deadline, SystemClock
from rollstream.errors import ConfigError, DeadlineExceeded

__all__ = ["RankGroup", "run_ranks"]

ANSWER_S = 5.0
"""How long a rank that gives up waits for the others to say that they are alive."""
LOOK_EVERY_S = 0.05


@dataclass(frozen=True, kw_only=True)
class RankGroup:
    """One rank's membership. `join` it before the first update.

    Attributes:
        rank, count: which of how many.
        meeting: where the ranks find each other: an absolute path that all see (a file that does not exist yet), or
            `tcp://host:port` of rank 0.
        backend: `gloo` for CPUs, `nccl` for GPUs.
        deadline_s: how long a rank waits for the others, at the start and in each update; longer than they take to compile.
    """

    rank: int
    count: int
    meeting: str
    backend: str = "gloo"
    deadline_s: float = 120.0

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.count:
            raise ConfigError(f"rank must lie in 0 to {self.count - 1} with {self.count} ranks, got {self.rank}")

    def join(self) -> None:
        """Meet the others.

        Raises:
            DeadlineExceeded: names the ranks that did not come.
        """
        self._say("here")
        missing = self._silent("here", wait_s=self.deadline_s)
        if missing:
            raise DeadlineExceeded(
                f"rank {self.rank} waited {self.deadline_s:g} s at {self.meeting} for {_named(missing)} of {self.count}; "
                "start all ranks, with the same meeting place"
            )
        dist.init_process_group(
            self.backend, store=self._store, rank=self.rank, world_size=self.count, timeout=timedelta(seconds=self.deadline_s)
        )

    def leave(self) -> None:
        """Let go of the others; they may go on without this rank only if they need it no more."""
        with suppress(RuntimeError):
            dist.destroy_process_group()

    def add_up(self, packed: Tensor) -> None:
        """Put the sum over all ranks into `packed` of each.

        Raises:
            DeadlineExceeded: names the ranks that did not take part.
        """
        try:
            dist.all_reduce(packed)
        except RuntimeError as error:
            raise DeadlineExceeded(self._who_failed()) from error

    def require_equal(self, parameters: npt.NDArray[np.float32]) -> None:
        """Raise `ConfigError` that names the ranks whose parameters differ from those of rank 0."""
        own = hashlib.sha256(parameters.tobytes()).digest()[:8]
        table = torch.zeros((self.count, 8))
        table[self.rank] = torch.tensor(list(own), dtype=torch.float32)
        there = table.to("cuda" if self.backend == "nccl" else "cpu")
        self.add_up(there)
        table = there.cpu()
        different = [rank for rank in range(self.count) if not torch.equal(table[rank], table[0])]
        if different:
            raise ConfigError(
                f"{_named(different)} of {self.count} has other parameters than rank 0; give all ranks the same seed"
            )

    def _who_failed(self) -> str:
        silent = list(range(1))  # the store is with rank 0: without it, nobody answers
        with suppress(RuntimeError):
            self._say("alive")
            silent = self._silent("alive", wait_s=ANSWER_S)
        if not silent:
            return f"rank {self.rank} lost touch with the others in an update, and all {self.count} are alive: is the network in order?"
        return f"rank {self.rank} waited for {_named(silent)} of {self.count} in an update; it is dead, or later than {self.deadline_s:g} s"

    def _say(self, what: str) -> None:
        self._store.set(f"{what}/{self.rank}", "1")

    def _silent(self, what: str, *, wait_s: float) -> list[int]:
        """Ranks that did not say it within `wait_s`."""
        clock = SystemClock()
        deadline = Deadline(clock, after_s=wait_s)
        while True:
            silent = [rank for rank in range(self.count) if not self._store.check([f"{what}/{rank}"])]
            if not silent or deadline.passed():
                return silent
            clock.sleep(LOOK_EVERY_S)

    @cached_property
    def _store(self) -> Any:
        if not self.meeting.startswith("tcp://"):
            return dist.FileStore(self.meeting, self.count)  # type: ignore[attr-defined]
        host, _, port = self.meeting.removeprefix("tcp://").rpartition(":")
        try:
            return dist.TCPStore(  # type: ignore[attr-defined]
                host,
                int(port),
                self.count,
                self.rank == 0,
                timeout=timedelta(seconds=self.deadline_s),
                wait_for_workers=False,
            )
        except (RuntimeError, ValueError) as error:
            raise DeadlineExceeded(f"rank {self.rank} of {self.count} cannot reach rank 0 at {self.meeting}: {error}") from error


def run_ranks(
    function: Callable[..., Any],
    *arguments: Any,
    learner_ranks: int,
    backend: str = "gloo",
    deadline_s: float = 120.0,
) -> Any:
    """`function(group, *arguments)` in `learner_ranks` processes of this machine, this one being rank 0; what rank 0 returned.

    The others are spawned: `function` must be importable, and a script must start below `if __name__ == "__main__":`. They end
    with this one.

    Raises:
        DeadlineExceeded: a rank died or is stuck; names it.
    """
    if learner_ranks < 1:
        raise ConfigError(f"learner_ranks must be >= 1, got {learner_ranks}")
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="rollstream-ranks-") as folder:
        groups = [
            RankGroup(
                rank=rank, count=learner_ranks, meeting=str(Path(folder) / "meeting"), backend=backend, deadline_s=deadline_s
            )
            for rank in range(learner_ranks)
        ]
        others = [spawn.Process(target=_rank, args=(function, group, arguments), daemon=True) for group in groups[1:]]
        for process in others:
            process.start()
        try:
            found = _rank(function, groups[0], arguments)
            for group, process in zip(groups[1:], others, strict=True):
                process.join(timeout=deadline_s)
                if process.exitcode != 0:
                    raise DeadlineExceeded(f"rank {group.rank} of {learner_ranks} ended with exit code {process.exitcode}")
        finally:
            for process in others:
                process.kill()
                process.join()
    return found


def _rank(function: Callable[..., Any], group: RankGroup, arguments: tuple[Any, ...]) -> Any:
    group.join()
    try:
        return function(group, *arguments)
    finally:
        group.leave()


def _named(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
