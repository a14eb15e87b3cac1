"""How many actors there should be: one small interface, and the two backends that need no cluster.

The third is `kubernetes.py`, a module of its own because the official client takes half a second and 60 MB to import.
"""

from __future__ import annotations

from typing import Protocol

from rollstream.store import Changes, Store, keys
from rollstream_control.failure import Failure

__all__ = ["LocalScaling", "NoScaling", "Scaling"]


class Scaling(Protocol):
    """A backend. Both methods may block for seconds: never call them in the event loop."""

    @property
    def name(self) -> str:
        """As in ROLLSTREAM_BACKEND."""
        ...

    def wanted(self) -> int | None:
        """How many actors the backend was told to run; None when it does not know."""
        ...

    def scale(self, replicas: int) -> None:
        """Ask for `replicas` actors; returns when the wish is recorded, not when they run. Safe to repeat."""
        ...


class LocalScaling:
    """Writes the number into Redis; the supervisor of `rollstream up` or `rollstream train` obeys."""

    name = "local"

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changes = Changes(store)

    def wanted(self) -> int | None:
        reply = self._store.run("read how many actors are wanted", lambda client: client.get(keys.wanted_actors()))
        return None if reply is None else int(reply)

    def scale(self, replicas: int) -> None:
        self._store.run("set how many actors are wanted", lambda client: client.set(keys.wanted_actors(), replicas))
        self._changes.announce("cell", "wanted_actors")


class NoScaling:
    """Nobody is there who could start actors."""

    name = "none"

    def wanted(self) -> int | None:
        return None

    def scale(self, replicas: int) -> None:
        raise Failure(
            "this cell cannot start actors by itself (ROLLSTREAM_BACKEND=none): under Compose run "
            f"`docker compose up --detach --scale actor={replicas}`, on Kubernetes set ROLLSTREAM_BACKEND=kubernetes",
            status=409,
            kind="no-backend",
        )
