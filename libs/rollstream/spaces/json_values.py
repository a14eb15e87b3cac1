"""Values of nested spaces as plain JSON, by their leaves alone: a Dict is an object, a Tuple a list, an array nested lists.

    {"camera": [[0, 255], ...], "arm": [0.5, 2]}   ⇄   observation.camera, observation.arm.0, observation.arm.1

Whoever answers a request needs no environment for it, only the leaves. Everything that is wrong with a value is told at once, each with
its path. Values outside of a Box's bounds are tolerated, as everywhere; a choice that does not exist is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, Problem
from rollstream.spaces.batch import Columns
from rollstream.spaces.leaf import Leaf

__all__ = ["columns_from_json", "json_from_columns"]

Array: TypeAlias = npt.NDArray[Any]
Tree: TypeAlias = "Leaf | dict[str, Tree]"

TOLD_PROBLEMS = 50
"""Most problems that one refusal lists: a batch of images in the wrong form has millions."""


def columns_from_json(leaves: Sequence[Leaf], name: str, values: Mapping[str, Any]) -> dict[str, Array]:
    """Columns [N, ...] of N values of a space.

    Args:
        leaves: the space's, under names that start with `name`.
        values: by the path under which a problem with it is told.

    Raises:
        ConfigError: with the path of everything that does not have the form of the space.
    """
    tree, problems = _tree(leaves, name), list[Problem]()
    columns = {leaf.name: np.zeros((len(values), *leaf.shape), leaf.dtype) for leaf in leaves}
    for index, (path, value) in enumerate(values.items()):
        for leaf, at, given in _leaf_values(tree, path, value, problems):
            read = _read(leaf, at, given, problems)
            if read is not None:
                columns[leaf.name][index] = read
    if problems:
        told = "; ".join(str(problem) for problem in problems[:TOLD_PROBLEMS])
        raise ConfigError(f"{name} has {len(problems)} bad field(s): {told}", problems=problems[:TOLD_PROBLEMS])
    return columns


def json_from_columns(leaves: Sequence[Leaf], name: str, columns: Columns) -> list[Any]:
    """The N values of a space whose columns are [N, ...]; `columns` may hold others too."""
    tree = _tree(leaves, name)
    plain = {leaf.name: columns[leaf.name].tolist() for leaf in leaves}
    rows = len(next(iter(plain.values())))
    return [_written(tree, plain, index) for index in range(rows)]


def _tree(leaves: Sequence[Leaf], name: str) -> Tree:
    root: dict[str, Tree] = {}
    for leaf in leaves:
        if leaf.name == name:
            return leaf
        *inner, last = leaf.name.removeprefix(f"{name}.").split(".")
        place = root
        for key in inner:
            found = place.setdefault(key, {})
            assert isinstance(found, dict), "a leaf has no parts"
            place = found
        place[last] = leaf
    return root


def _is_tuple(tree: Mapping[str, Tree]) -> bool:
    return list(tree) == [str(index) for index in range(len(tree))]


def _written(tree: Tree, plain: Mapping[str, list[Any]], index: int) -> Any:
    if isinstance(tree, Leaf):
        return plain[tree.name][index]
    parts = {key: _written(part, plain, index) for key, part in tree.items()}
    return list(parts.values()) if _is_tuple(tree) else parts


def _leaf_values(tree: Tree, path: str, value: Any, problems: list[Problem]) -> Iterator[tuple[Leaf, str, Any]]:
    """What stands at each leaf, with its path; what is missing or too much becomes a problem."""
    if isinstance(tree, Leaf):
        yield tree, path, value
        return
    if _is_tuple(tree) and isinstance(value, list):
        if len(value) != len(tree):
            problems.append(Problem(path=path, message=f"must be a list of {len(tree)} parts, got {len(value)}"))
            return
        value = {str(index): part for index, part in enumerate(value)}
    if not isinstance(value, dict):
        kind = f"a list of {len(tree)} parts" if _is_tuple(tree) else f"an object with {', '.join(tree)}"
        problems.append(Problem(path=path, message=f"must be {kind}, got {_kind(value)}"))
        return
    problems += [Problem(path=f"{path}.{key}", message="is missing") for key in tree if key not in value]
    known = ", ".join(tree)
    problems += [Problem(path=f"{path}.{key}", message=f"is not part of it; known: {known}") for key in value if key not in tree]
    for key, part in tree.items():
        if key in value:
            yield from _leaf_values(part, f"{path}.{key}", value[key], problems)


def _read(leaf: Leaf, path: str, value: Any, problems: list[Problem]) -> Array | None:
    found = len(problems)
    array = _numbers(leaf, path, value, problems)
    if array is None:
        return None
    dtype = np.dtype(leaf.dtype)
    with np.errstate(invalid="ignore"):
        cast = array.astype(dtype)
    if dtype.kind in "biu" and not np.array_equal(cast, array):
        problems.append(_at(path, array, cast != array, f"must be a whole number that fits {dtype}"))
    elif leaf.counts:
        starts = np.reshape(leaf.starts, leaf.shape)
        ends = starts + np.reshape(leaf.counts, leaf.shape)
        outside = (array < starts) | (array >= ends)
        if outside.any():
            first = tuple(np.argwhere(outside)[0])
            allowed = f"must be one of the choices {starts[first]} to {ends[first] - 1}"
            problems.append(_at(path, array, outside, allowed))
    elif leaf.kind == "multi_binary" and ((array != 0) & (array != 1)).any():
        problems.append(_at(path, array, (array != 0) & (array != 1), "must be 0 or 1"))
    return cast if len(problems) == found else None


def _numbers(leaf: Leaf, path: str, value: Any, problems: list[Problem]) -> Array | None:
    strange = next(_strange(value, path), None)
    if strange is not None:
        problems.append(strange)
        return None
    try:
        array = np.asarray(value)
    except ValueError:
        problems.append(Problem(path=path, message="has lists of different lengths side by side"))
        return None
    if array.shape != leaf.shape:
        got, wanted = (list(shape) if shape else "of one number" for shape in (array.shape, leaf.shape))
        problems.append(Problem(path=path, message=f"must have shape {wanted}, got {got}"))
        return None
    if array.dtype == object:
        problems.append(Problem(path=path, message="has numbers with more digits than 64 bits hold"))
        return None
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        problems.append(_at(path, array, ~np.isfinite(array), "must be finite"))
        return None
    return array


def _strange(value: Any, path: str) -> Iterator[Problem]:
    """The entries that are no numbers."""
    if isinstance(value, list):
        if all(type(entry) in (int, float) for entry in value):  # nearly always, and fast
            return
        for index, entry in enumerate(value):
            yield from _strange(entry, f"{path}.{index}")
    elif not isinstance(value, int | float):
        yield Problem(path=path, message=f"must be a number or lists of them, got {_kind(value)}")


def _at(path: str, array: Array, wrong: Array, allowed: str) -> Problem:
    place = tuple(np.argwhere(wrong)[0]) if array.shape else ()
    return Problem(path=".".join([path, *map(str, place)]), message=f"{allowed}, got {array[place]}")


def _kind(value: Any) -> str:
    named: dict[type, str] = {type(None): "null", dict: "an object", list: "a list", str: "text"}
    return named.get(type(value), str(value))
