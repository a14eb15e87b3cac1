"""Peers that add up vectors among themselves by gloo, in groups that may be formed anew while the process lives.

Unlike `parallel`, which ends with the first rank that dies, nothing global is kept here (no default process group): when a peer is
gone the others let go of the group (`PeerLost`) and meet again in another one.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import numpy.typing as npt
import torch
from torch import distributed as dist

from rollstream.errors import PeerLost

__all__ = ["PeerGroup", "open_meeting"]


def open_meeting(host: str, *, count: int, deadline_s: float) -> Any:
    """Rank 0 opens a place where `count` ranks meet, on a free port; it has the attributes `host` and `port`."""
    return dist.TCPStore(  # type: ignore[attr-defined]
        host, 0, count, True, timeout=timedelta(seconds=deadline_s), wait_for_workers=False
    )


class PeerGroup:
    """One rank's membership of one group.

    Args:
        address: `host:port` of rank 0's meeting place.
        opened: what `open_meeting` gave, for rank 0.
        host: address of this machine that the others reach.
        join_s: how long the others may take to come.
        deadline_s: how long any exchange waits for the slowest.

    Raises:
        PeerLost: the others did not come.
    """

    def __init__(
        self, *, rank: int, count: int, address: str, host: str, join_s: float, deadline_s: float, opened: Any = None
    ) -> None:
        self.rank = rank
        self.count = count
        self._deadline_s = deadline_s
        timeout = timedelta(seconds=join_s)
        try:
            name, _, port = address.rpartition(":")
            self._store = opened or dist.TCPStore(  # type: ignore[attr-defined]
                name, int(port), count, False, timeout=timeout, wait_for_workers=False
            )
            gloo: Any = dist.ProcessGroupGloo  # PyTorch declares only a part of it
            options = gloo._Options()
            options._timeout = timeout
            options._devices = [gloo.create_device(hostname=host)]
            self._group: Any = gloo(self._store, rank, count, options)
            self._group._set_default_timeout(timedelta(seconds=deadline_s))
        except RuntimeError as error:
            raise self._lost("at the start", error) from error

    def add_up(self, values: npt.NDArray[Any]) -> None:
        """Put the sum over all ranks into `values` of each, the same numbers bit for bit.

        Raises:
            PeerLost: a peer is dead or late.
        """
        self._wait("while adding up", lambda tensor: self._group.allreduce([tensor]), values)

    def take_from_first(self, values: npt.NDArray[Any]) -> None:
        """Put what rank 0 has into `values` of all. Raises as `add_up` does."""
        self._wait("while sharing the state of rank 0", lambda tensor: self._group.broadcast(tensor, 0), values)

    def close(self) -> None:
        """Let go: the others notice at once."""
        with suppress(RuntimeError):
            self._group.abort()
        self._group = self._store = None

    def _wait(self, when: str, start: Any, values: npt.NDArray[Any]) -> None:
        tensor = torch.from_numpy(values)
        try:
            start(tensor).wait(timedelta(seconds=self._deadline_s))
        except RuntimeError as error:
            raise self._lost(when, error) from error

    def _lost(self, when: str, error: Exception) -> PeerLost:
        reason = str(error).splitlines()[0]
        return PeerLost(f"rank {self.rank} of {self.count} lost a peer {when}: {reason}; the rest form a new group")
