"""What is left of an edge when its experiment has ended, and its removal."""

from __future__ import annotations

from rollstream.store import Store, keys

__all__ = ["remove_edge"]


def remove_edge(store: Store, *, experiment: str, name: str) -> None:
    """Delete the edge's messages, credit and dead letters. Wake-up lists expire by themselves."""
    gone = (keys.edge(experiment, name), keys.edge_credit(experiment, name), keys.edge_dead_letters(experiment, name))
    store.run(f"remove edge {name} of {experiment}", lambda client: client.unlink(*gone))
