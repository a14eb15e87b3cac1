"""What agents that learn from what actors send over edges have in common: no tables, and the columns that their policy adds to rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.graph.policies import ActorCriticPolicy
from rollstream.spaces import Column, RowSpec

__all__ = ["OnPolicyAgent"]


class OnPolicyAgent:
    """Base of such agents, which set `policy`."""

    policy: ActorCriticPolicy
    table_names: tuple[str, ...] = ()

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return self.policy.extra_columns

    def tables(self, rows: RowSpec) -> Mapping[str, Any]:
        return {}
