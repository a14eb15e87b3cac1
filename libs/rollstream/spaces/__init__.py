"""Spaces, columns and rows: how values of nested spaces become packed bytes and back.

Nothing here imports Gymnasium at import time, so processes without environments never load it.
"""

from rollstream.spaces.batch import Batch, Columns, Episodes, Rollout
from rollstream.spaces.companions import length_name, optional, present_name, ragged
from rollstream.spaces.flatten import SpaceLayout, flatten, unflatten
from rollstream.spaces.json_values import columns_from_json, json_from_columns
from rollstream.spaces.leaf import Leaf
from rollstream.spaces.leaves import leaves
from rollstream.spaces.row_spec import Column, Flag, RowSpec
from rollstream.spaces.rows import row_spec

__all__ = [
    "Batch",
    "Column",
    "Columns",
    "Episodes",
    "Flag",
    "Leaf",
    "Rollout",
    "RowSpec",
    "SpaceLayout",
    "columns_from_json",
    "flatten",
    "json_from_columns",
    "leaves",
    "length_name",
    "optional",
    "present_name",
    "ragged",
    "row_spec",
    "unflatten",
]
