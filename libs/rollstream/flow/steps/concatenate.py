"""concatenate: several batches as one."""

from __future__ import annotations

from collections.abc import Sequence

from rollstream.flow.batches import join_batches
from rollstream.flow.step import Bound, Step
from rollstream.spaces import Batch

__all__ = ["concatenate"]


def concatenate() -> Step[Sequence[Batch], Batch]:
    """Join the batches of every item (of `window`) into one."""
    return Step(name="concatenate", bind=_joining, takes="batches", gives="batch")


def _joining(side: object) -> Bound:
    return join_batches
