"""train_with_peers: every actor learns from its own rows, and all average each gradient, so that all have the same weights.

    rows ─▶ minibatch ─▶ gradient ─▶ sum over peers (gloo) ─▶ mean ─▶ optimizer step ─▶ ... ─▶ act with these weights
                                          ▲
             a peer dies or joins ─▶ new group ─▶ all take rank 0's weights and moments ─▶ the round begins again

The learner gets counts, and from rank 0 the weights, which it publishes and saves; it computes nothing.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, PeerLost
from rollstream.flow.node import require_at_least
from rollstream.flow.sides import ActorSide
from rollstream.flow.step import Step
from rollstream.spaces import Batch, Columns

__all__ = ["PARAMETERS", "PEER_UPDATES", "LocalTraining", "train_with_peers"]

_LOG = logging.getLogger("rollstream.flow")

PARAMETERS = "parameters"
"""Column of the flat vector [1, P] in rank 0's messages; [0, P] in those of others."""
PEER_UPDATES = "peer_updates"
"""Metric: optimizer steps that led to `parameters`."""
EXCHANGE_WITHIN_S = 60.0
"""How long an exchange waits for the slowest peer, which may still be collecting its rollout."""
JOIN_WITHIN_S = 10.0
"""How long a new group waits for its members, who have all just said that they wait for it."""
ATTEMPTS = 10
HASH_BYTES = 6
"""Bytes of a hash as one float64, which holds integers up to 2^53."""


class LocalTraining(Protocol):
    """What `training()` of an agent gives: parameters and optimizer of this actor, as NumPy alone runs them."""

    @property
    def updates(self) -> int: ...

    def start(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Begin with these weights and no moments."""
        ...

    def gradient(self, columns: Columns) -> Any:
        """Mean gradient of these rows: something with `vector` [P], `rows` and `metrics`."""
        ...

    def apply(self, vector: npt.NDArray[np.float32], *, env_steps: int) -> Mapping[str, float]:
        """One optimizer step; tells `updates` and `skipped_updates`."""
        ...

    def pack(self) -> npt.NDArray[np.float64]:
        """Parameters, moments and count as one vector."""
        ...

    def unpack(self, packed: npt.NDArray[np.float64]) -> None:
        """Take up what `pack` of a peer gave."""
        ...

    def parameters(self) -> npt.NDArray[np.float32]: ...

    def tensors(self) -> Mapping[str, npt.NDArray[np.float32]]: ...


def train_with_peers(*, epochs: int, minibatches: int, peers: int) -> Step[Batch, Batch]:
    """Minibatch updates in the actor, each with the mean gradient over all actors that are there (weighted by rows).

    Every actor makes `epochs` times `minibatches` updates a round, whatever number of rows it has, so all stay in step. After each
    round hashes of the parameters are compared, and weights that differ (other processors round differently) are made equal.

    Args:
        peers: actors that the experiment asks for; a group forms at once when so many are there.
    """
    for name, value in (("epochs", epochs), ("minibatches", minibatches), ("peers", peers)):
        require_at_least(1, value, what=f"{name} of train_with_peers")
    return Step(
        name="train_with_peers",
        bind=_TrainWithPeers(epochs, minibatches, peers),
        where="actor",
        settings={"epochs": epochs, "minibatches": minibatches, "peers": peers},
        takes="batch",
        gives="batch",
    )


@dataclass(frozen=True, slots=True)
class _TrainWithPeers:
    epochs: int
    minibatches: int
    peers: int

    def __call__(self, side: ActorSide) -> _Member:
        return _Member(side, self)


class _Member:
    """One actor among its peers."""

    def __init__(self, side: ActorSide, settings: _TrainWithPeers) -> None:
        if side.peers is None and settings.peers > 1:
            raise ConfigError(
                f"train_with_peers has {settings.peers} actors in one process, where each would wait for the others; "
                "set actors: 1, or run without --inline"
            )
        self._side = side
        self._settings = settings
        self._training: LocalTraining | None = None
        self._group: Any = None
        self._met = False
        self._rank = 0
        self._version = 0
        self._env_steps = 0
        self._groups = 0
        self._members: tuple[str, ...] = ()

    def __call__(self, batch: Batch) -> Batch:
        training = self._ready()
        self._version = max(self._version, batch.version)
        for attempt in range(ATTEMPTS):
            try:
                metrics = self._round(training, batch)
                break
            except PeerLost as lost:
                _LOG.warning("%s: %s", self._side.actor, lost)
                self._let_go()
                if attempt == ATTEMPTS - 1:
                    raise
        self._version += 1
        self._side.act_with(training.tensors(), version=self._version)
        parameters = training.parameters()[None]
        return replace(
            batch,
            columns={PARAMETERS: parameters if self._rank == 0 else parameters[:0]},
            metrics={**batch.metrics, **metrics},
        )

    def close(self) -> None:
        """Leave: the others notice at once."""
        self._let_go()

    def _ready(self) -> LocalTraining:
        if self._training is None:
            training: LocalTraining = self._side.agent.training()
            training.start(self._side.tensors())
            self._training = training
        return self._training

    def _round(self, training: LocalTraining, batch: Batch) -> dict[str, float]:
        self._gather_round(training)
        told = np.array([float(self._is_wanted()), float(batch.env_steps)])
        self._add_up(told)
        if told[0]:
            self._let_go()
            self._gather_round(training)
            told = np.array([0.0, float(batch.env_steps)])
            self._add_up(told)
        self._env_steps += int(told[1])
        before = training.updates
        metrics = self._epochs(training, batch)
        unequal = self._make_equal(training)
        return {
            **metrics,
            PEER_UPDATES: float(training.updates - before),
            "peers": float(self._group.count if self._group is not None else 1),
            "peer_groups": float(self._groups),
            "unequal_peers": float(unequal),
        }

    def _epochs(self, training: LocalTraining, batch: Batch) -> dict[str, float]:
        generator = self._side.generator("minibatches")
        sums: dict[str, float] = {}
        skipped = 0.0
        for _ in range(self._settings.epochs):
            order = generator.permutation(batch.rows)
            for part in np.array_split(order, self._settings.minibatches):
                vector, metrics = self._mean(training, {name: column[part] for name, column in batch.columns.items()}, len(part))
                applied = training.apply(vector, env_steps=self._env_steps)
                skipped += applied["skipped_updates"]
                for name, value in metrics.items():
                    sums[name] = sums.get(name, 0.0) + value
        updates = self._settings.epochs * self._settings.minibatches
        return {**{name: value / updates for name, value in sums.items()}, "skipped_updates": skipped}

    def _mean(self, training: LocalTraining, columns: Columns, rows: int) -> tuple[npt.NDArray[np.float32], dict[str, float]]:
        """Gradient of all peers' rows, and metrics of the own ones."""
        size = len(training.parameters())
        packed = np.zeros(size + 1, np.float32)
        metrics: dict[str, float] = {}
        if rows:
            found = training.gradient(columns)
            packed[:size] = found.vector * np.float32(rows)
            packed[size] = rows
            metrics = dict(found.metrics)
        self._add_up(packed)
        return packed[:size] / max(packed[size], np.float32(1)), metrics

    def _make_equal(self, training: LocalTraining) -> int:
        """Compare hashes; where one differs all take rank 0's state. How many differed."""
        if self._group is None:
            return 0
        digest = hashlib.sha256(training.parameters().tobytes()).digest()[:HASH_BYTES]
        table = np.zeros(self._group.count)
        table[self._rank] = float(int.from_bytes(digest, "little"))
        self._add_up(table)
        unequal = int((table != table[0]).sum())
        if unequal:
            _LOG.warning("%d of %d peers have other parameters than rank 0 and take those", unequal, self._group.count)
            self._take_state(training)
        return unequal

    def _gather_round(self, training: LocalTraining) -> None:
        """Form a group when there is none."""
        peers = self._side.peers
        if self._met or peers is None:
            return
        from rollstream.graph.peers import PeerGroup, open_meeting

        opened: list[Any] = []

        def open_at(count: int) -> str:
            opened.append(open_meeting(peers.host, count=count, deadline_s=JOIN_WITHIN_S))
            return f"{peers.host}:{opened[-1].port}"

        meeting = peers.meet(standing=training.updates, expected=self._settings.peers, open_at=open_at)
        self._rank, self._met = meeting.rank, True
        self._groups = meeting.generation
        self._tell_who_is_gone(meeting.members)
        if len(meeting.members) == 1:
            return
        self._group = PeerGroup(
            rank=meeting.rank,
            count=len(meeting.members),
            address=meeting.address,
            host=peers.host,
            join_s=JOIN_WITHIN_S,
            deadline_s=EXCHANGE_WITHIN_S,
            opened=opened[-1] if meeting.rank == 0 else None,
        )
        self._take_state(training)

    def _tell_who_is_gone(self, members: tuple[str, ...]) -> None:
        """Gloo knows ranks; who of the last group is missing in this one is known here. The first of them tells."""
        gone, self._members = sorted(set(self._members) - set(members)), members
        if gone and self._rank == 0:
            _LOG.warning("%s left the group; it goes on with %s", ", ".join(gone), ", ".join(members))

    def _take_state(self, training: LocalTraining) -> None:
        """Weights, moments, version and count of steps of rank 0 become those of all."""
        packed = np.concatenate([training.pack(), [float(self._version), float(self._env_steps)]])
        self._group.take_from_first(packed)
        training.unpack(packed[:-2])
        self._version, self._env_steps = int(packed[-2]), int(packed[-1])

    def _is_wanted(self) -> bool:
        """Whether somebody waits to join."""
        return self._side.peers is not None and self._side.peers.someone_waits()

    def _add_up(self, values: npt.NDArray[Any]) -> None:
        if self._group is not None:
            self._group.add_up(values)

    def _let_go(self) -> None:
        group, self._group, self._met = self._group, None, False
        if group is not None:
            group.close()
