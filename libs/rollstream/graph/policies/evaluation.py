"""What a policy thinks of actions taken before."""

from __future__ import annotations

from dataclasses import dataclass

from rollstream.graph.ops import Array

__all__ = ["Evaluation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """All [B], or [B, T] for sequences. `value` is None for a policy without value head."""

    log_prob: Array
    entropy: Array
    value: Array | None
