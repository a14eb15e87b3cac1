"""A tree of state as JSON plus arrays: no pickle, readable by a person, exact to the bit.

A tree is made of dictionaries with string keys, lists, NumPy arrays, strings, numbers, booleans and None. Arrays go to one
safetensors file; in the JSON an array's place is held by `{"$array": name}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import CheckpointError

__all__ = ["Arrays", "Tree", "join", "split"]

Tree: TypeAlias = Any
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

MARK = "$array"


def split(tree: Tree) -> tuple[Any, Arrays]:
    """`tree` as (JSON-able value, arrays by dotted path)."""
    arrays: Arrays = {}
    return _split(tree, "", arrays), arrays


def _split(node: Tree, path: str, arrays: Arrays) -> Any:
    if isinstance(node, np.ndarray):
        name = path or "value"
        arrays[name] = np.ascontiguousarray(node)
        return {MARK: name, "shape": list(node.shape)}
    if isinstance(node, Mapping):
        for key in node:
            if not isinstance(key, str) or key == MARK:
                raise CheckpointError(f"state at {path or 'the root'} has the key {key!r}; keys are strings other than {MARK!r}")
        return {key: _split(value, f"{path}.{key}" if path else key, arrays) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [_split(value, f"{path}[{index}]", arrays) for index, value in enumerate(node)]
    if isinstance(node, np.generic):
        return node.item()
    if node is None or isinstance(node, (str, int, float, bool)):
        return node
    raise CheckpointError(
        f"state at {path or 'the root'} is a {type(node).__name__}, which cannot be saved; "
        "allowed are dictionaries, lists, arrays, strings, numbers, booleans and None"
    )


def join(value: Any, arrays: Mapping[str, npt.NDArray[Any]]) -> Tree:
    """The inverse of `split`."""
    if isinstance(value, dict):
        if MARK in value:
            name = value[MARK]
            if name not in arrays:
                raise CheckpointError(f"the checkpoint names the array {name!r} but does not hold it; it is damaged")
            return arrays[name].reshape(value["shape"])
        return {key: join(entry, arrays) for key, entry in value.items()}
    if isinstance(value, list):
        return [join(entry, arrays) for entry in value]
    return value
