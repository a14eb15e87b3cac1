"""concatenate: several batches as one."""

from __future__ import annotations

from rollstream.flow.batches import join_batches
from rollstream.flow.step import Bound, Step

__all__ = ["concatenate"]


def concatenate() -> Step:
    """Join the batches of every item (of `window`) into one."""
    return Step(name="concatenate", bind=_joining, takes="batches", gives="batch")


def _joining(side: object) -> Bound:
    return join_batches
