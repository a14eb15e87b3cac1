"""Spaces, columns and rows: how values of nested spaces become packed bytes and back.

Nothing here imports Gymnasium at import time, so processes without environments never load it.
"""

from rollstream.spaces.agents import AgentSpaces, PolicyView, Presence, agents_of, is_multi_agent
from rollstream.spaces.batch import Batch, Columns, Episodes, Rollout
from rollstream.spaces.companions import length_name, optional, present_name, ragged
from rollstream.spaces.flatten import SpaceLayout, flatten, unflatten
from rollstream.spaces.json_values import columns_from_json, json_from_columns
from rollstream.spaces.leaf import Leaf
from rollstream.spaces.leaves import leaves
from rollstream.spaces.row_spec import Column, Flag, RowSpec
from rollstream.spaces.rows import row_spec

__all__ = [
    "AgentSpaces",
    "Batch",
    "Column",
    "Columns",
    "Episodes",
    "Flag",
    "Leaf",
    "PolicyView",
    "Presence",
    "Rollout",
    "RowSpec",
    "SpaceLayout",
    "agents_of",
    "columns_from_json",
    "flatten",
    "is_multi_agent",
    "json_from_columns",
    "leaves",
    "length_name",
    "optional",
    "present_name",
    "ragged",
    "row_spec",
    "unflatten",
]
