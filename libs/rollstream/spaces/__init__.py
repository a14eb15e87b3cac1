"""Spaces, columns and rows: how values of nested spaces become packed bytes and back."""

from rollstream.spaces.batch import Batch, Columns, Episodes, Rollout
from rollstream.spaces.leaf import Leaf
from rollstream.spaces.row_spec import Column, Flag, RowSpec

__all__ = ["Batch", "Column", "Columns", "Episodes", "Flag", "Leaf", "Rollout", "RowSpec"]
