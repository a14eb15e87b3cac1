"""Publishing and pulling weights: the learner writes a new version, actors ask whether there is a newer one.

    learner  publish(version) ──MULTI: SET blob, HSET latest, UNLINK what is too old──▶ Redis ◀──HGET latest, GET blob── actors

Actors pull when they begin a rollout, so nothing is pushed at a busy one and lost. Versions only grow; what is not finite is not
published and not taken; the last four versions are kept, so that an actor which has just asked for one still finds it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy.typing as npt

from rollstream.errors import SchemaMismatch, StoreRefused
from rollstream.store import Lease, Store, keys
from rollstream.weights.codec import decode_tensors, encode_tensors, require_finite

__all__ = ["KEPT_VERSIONS", "WeightStore", "Weights"]

Pipeline = TypeVar("Pipeline", bound=Any)

KEPT_VERSIONS = 4
"""Newest versions that stay in Redis: an actor may be three publications late between asking and reading."""
_LATEST = "latest"
_HASH = "sha256:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """One published version.

    Attributes:
        tensors: read-only arrays by name; views of one buffer.
        sha256: of the safetensors bytes; equal for equal weights, whatever their version.
    """

    version: int
    tensors: Mapping[str, npt.NDArray[Any]]
    sha256: str


class WeightStore:
    """The weights of one experiment."""

    def __init__(self, store: Store, *, experiment: str) -> None:
        self._store = store
        self._experiment = experiment
        self._key = keys.experiment_weights(experiment)

    # -- the learner's side

    def publish(self, version: int, tensors: Mapping[str, npt.NDArray[Any]], *, lease: Lease | None = None) -> str:
        """Make `version` the newest. Publishing the newest version again with equal tensors changes nothing.

        Returns:
            SHA-256 of the bytes.

        Raises:
            NonFiniteError: a tensor holds NaN or an infinity; names it. Nothing was published.
            StoreRefused: the version is not newer than what is published.
            LeaseLost: the experiment belongs to another learner.
        """
        require_finite(tensors, what=f"weights version {version} of {self._experiment}")
        blob = encode_tensors(tensors)
        sha256 = hashlib.sha256(blob).hexdigest()
        known = self._known()
        latest = max(known, default=0)
        if version == latest and known[latest] == sha256:
            return sha256
        if version <= latest:
            raise self._not_newer(version, latest)
        too_old = sorted(known)[: -(KEPT_VERSIONS - 1)]

        def fill(pipeline: Pipeline) -> None:
            pipeline.set(keys.experiment_weights_version(self._experiment, version), blob)
            pipeline.hset(self._key, mapping={_LATEST: str(version), f"{_HASH}{version}": sha256})
            if too_old:
                pipeline.unlink(*(keys.experiment_weights_version(self._experiment, old) for old in too_old))
                pipeline.hdel(self._key, *(f"{_HASH}{old}" for old in too_old))

        if lease is not None:
            lease.guarded("publish weights", fill)
        else:
            self._write_unless_overtaken(version, sha256, fill)
        return sha256

    def _write_unless_overtaken(self, version: int, sha256: str, fill: Any) -> None:
        def operation(client: Any) -> None:
            with client.pipeline(transaction=True) as pipeline:
                pipeline.watch(self._key)
                latest, same = (pipeline.hget(self._key, field) for field in (_LATEST, f"{_HASH}{version}"))
                if same == sha256.encode():
                    return  # an earlier attempt came through; its reply was lost
                if latest is not None and int(latest) >= version:
                    raise self._not_newer(version, int(latest))
                pipeline.multi()
                fill(pipeline)
                pipeline.execute()

        self._store.run("publish weights", operation)

    def _not_newer(self, version: int, latest: int) -> StoreRefused:
        return StoreRefused(
            f"weights version {version} of {self._experiment} is not newer than the published {latest}; "
            f"versions only grow: go on with {latest + 1}"
        )

    def _known(self) -> dict[int, str]:
        """Versions that are kept, with their hashes."""

        def operation(client: Any) -> dict[bytes, bytes]:
            fields: dict[bytes, bytes] = client.hgetall(self._key)
            return fields

        fields = self._store.run("look at published weights", operation)
        prefix = _HASH.encode()
        return {int(name[len(prefix) :]): text.decode() for name, text in fields.items() if name.startswith(prefix)}

    # -- the actors' side

    @property
    def latest_command(self) -> tuple[str, str, str]:
        """The command whose reply `parse_latest` reads: rides on the pipeline of a flush, so that asking costs no round trip."""
        return ("HGET", self._key, _LATEST)

    @staticmethod
    def parse_latest(reply: bytes | None) -> int:
        """The newest version by the reply to `latest_command`; 0 when nothing is published."""
        return 0 if reply is None else int(reply)

    def latest(self) -> int:
        """The newest version; 0 when nothing is published."""

        def operation(client: Any) -> bytes | None:
            reply: bytes | None = client.hget(self._key, _LATEST)
            return reply

        return self.parse_latest(self._store.run("ask for the newest weights", operation))

    def fetch(self, version: int | None = None) -> Weights | None:
        """A version of the weights, the newest when none is named; None when there is none (or it was collected).

        Raises:
            SchemaMismatch: what lies there are not the weights that were published.
            NonFiniteError: a tensor holds NaN or an infinity.
        """
        if version is not None:
            return self._fetch(version)
        return self.fetch_if_newer(0)

    def fetch_if_newer(self, than: int) -> Weights | None:
        """The newest weights if they are newer than version `than`; None otherwise, for the price of one small reply."""
        while True:
            latest = self.latest()
            if latest <= than:
                return None
            weights = self._fetch(latest)
            if weights is not None:
                return weights
            if self.latest() == latest:
                return None  # the blob is gone and nothing newer came: somebody deleted it

    def _fetch(self, version: int) -> Weights | None:
        def operation(client: Any) -> list[bytes | None]:
            with client.pipeline(transaction=False) as pipeline:
                pipeline.get(keys.experiment_weights_version(self._experiment, version))
                pipeline.hget(self._key, f"{_HASH}{version}")
                replies: list[bytes | None] = pipeline.execute()
                return replies

        blob, published = self._store.run("fetch weights", operation)
        if blob is None or published is None:
            return None
        tensors = decode_tensors(blob)
        sha256 = hashlib.sha256(blob).hexdigest()
        what = f"weights version {version} of {self._experiment}"
        if sha256 != published.decode():
            raise SchemaMismatch(
                f"{what} refused: SHA-256 is {sha256}, published was {published.decode()}; somebody overwrote them"
            )
        require_finite(tensors, what=what)
        return Weights(version=version, tensors=tensors, sha256=sha256)
