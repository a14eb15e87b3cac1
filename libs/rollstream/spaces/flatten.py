"""Values of nested spaces to columns and back, for whole batches of environments.

A `SpaceLayout` is compiled once from a space; reading a batch then costs one check a leaf and no copy. It is the only place
where observations are cast: to the dtype of the space, when that loses nothing but floating-point precision. Anything else that
differs from the declared space (batch axis, shape, key, kind of number) is an `EnvironmentFault` that names the key, what was
expected and what came; never a broadcast, never a transpose. Values outside of the bounds of a Box are tolerated: simulators
round.

Two layouts come from vector environments, and both are read: nested arrays `{"a": [N, ...]}`, and N nested values
`({"a": ...}, {"a": ...})`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import EnvironmentFault
from rollstream.spaces.batch import Columns
from rollstream.spaces.leaf import Leaf
from rollstream.spaces.leaves import leaves

if TYPE_CHECKING:
    import gymnasium

__all__ = ["SpaceLayout", "flatten", "unflatten"]

Array = npt.NDArray[Any]


def flatten(space: gymnasium.Space[Any], name: str, value: Any, *, batch: int) -> dict[str, Array]:
    """Columns [N, ...] of a batch of values of `space`; see `SpaceLayout.read`."""
    return SpaceLayout(space, name).read(value, batch=batch)


def unflatten(space: gymnasium.Space[Any], name: str, columns: Columns) -> Any:
    """A batch of values of `space` in vector-environment layout; see `SpaceLayout.write`."""
    return SpaceLayout(space, name).write(columns)


class SpaceLayout:
    """How values of one space map to columns.

    Attributes:
        leaves: the leaves of the space, in row order.
    """

    def __init__(self, space: gymnasium.Space[Any], name: str) -> None:
        self.leaves: tuple[Leaf, ...] = leaves(space, name)
        self._root = _compile(space, name, {leaf.name: leaf for leaf in self.leaves})

    def read(self, value: Any, *, batch: int) -> dict[str, Array]:
        """Columns [batch, ...] in stored dtypes; arrays that fit already are passed on without a copy.

        Raises:
            EnvironmentFault: the value does not have the form of the space.
        """
        columns: dict[str, Array] = {}
        self._root.read(value, batch, False, columns)
        return columns

    def read_each(self, values: Sequence[Any]) -> dict[str, Array]:
        """Columns [len(values), ...] of values that stand one for each environment."""
        columns: dict[str, Array] = {}
        self._root.read(values, len(values), True, columns)
        return columns

    def write(self, columns: Columns) -> Any:
        """The batch of values, nested like the space, its arrays those of `columns`."""
        return self._root.write(columns)

    def write_one(self, columns: Columns, index: int) -> Any:
        """The value at `index` of the batch; what a plain environment's `step` takes."""
        return self._root.write_one(columns, index)


class _Node(Protocol):
    def read(self, value: Any, batch: int, each: bool, into: dict[str, Array]) -> None: ...
    def write(self, columns: Columns) -> Any: ...
    def write_one(self, columns: Columns, index: int) -> Any: ...


def _compile(space: gymnasium.Space[Any], path: str, known: Mapping[str, Leaf]) -> _Node:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return _DictNode(path, {key: _compile(child, f"{path}.{key}", known) for key, child in space.spaces.items()})
    if isinstance(space, spaces.Tuple):
        return _TupleNode(path, [_compile(child, f"{path}.{i}", known) for i, child in enumerate(space.spaces)])
    return _LeafNode(known[path])


class _LeafNode:
    def __init__(self, leaf: Leaf) -> None:
        self._name = leaf.name
        self._shape = leaf.shape
        self._dtype = np.dtype(leaf.dtype)

    def read(self, value: Any, batch: int, each: bool, into: dict[str, Array]) -> None:
        array = value if type(value) is np.ndarray and value.dtype != object else self._array(value)
        if array.dtype != self._dtype or len(array.shape) == 0 or len(array) != batch or array.shape[1:] != self._shape:
            array = self._converted(array, batch)
        into[self._name] = array

    def write(self, columns: Columns) -> Any:
        return columns[self._name]

    def write_one(self, columns: Columns, index: int) -> Any:
        return columns[self._name][index]

    def _array(self, value: Any) -> Array:
        try:
            return np.asarray(list(value) if isinstance(value, np.ndarray) else value)
        except ValueError as error:
            shapes = sorted({np.shape(entry) for entry in value})
            raise EnvironmentFault(
                f"{self._name}: expected entries of shape {self._shape}, got shapes {shapes} in one batch; "
                "the environment must return what its space declares"
            ) from error

    def _converted(self, array: Array, batch: int) -> Array:
        if array.shape != (batch, *self._shape):
            raise EnvironmentFault(
                f"{self._name}: expected {batch} x {self._dtype}{list(self._shape)}, got an array of shape "
                f"{list(array.shape)} of {array.dtype}; the environment must return what its space declares"
            )
        if np.can_cast(array.dtype, self._dtype, "same_kind"):
            return array.astype(self._dtype)
        if array.dtype.kind in "biu" and self._dtype.kind in "biu":
            cast = array.astype(self._dtype)
            if np.array_equal(cast, array):
                return cast
        raise EnvironmentFault(
            f"{self._name}: expected numbers of {self._dtype}, got {array.dtype} that do not fit without loss; "
            "the environment must return what its space declares"
        )


class _DictNode:
    def __init__(self, path: str, children: Mapping[str, _Node]) -> None:
        self._path = path
        self._children = dict(children)

    def read(self, value: Any, batch: int, each: bool, into: dict[str, Array]) -> None:
        if not isinstance(value, Mapping):
            self._read_each(value, batch, into)
            return
        for key, child in self._children.items():
            if key not in value:
                raise _missing_key(self._path, key, value)
            child.read(value[key], batch, False, into)

    def write(self, columns: Columns) -> Any:
        return {key: child.write(columns) for key, child in self._children.items()}

    def write_one(self, columns: Columns, index: int) -> Any:
        return {key: child.write_one(columns, index) for key, child in self._children.items()}

    def _read_each(self, value: Any, batch: int, into: dict[str, Array]) -> None:
        if not _is_row_of(value, Mapping) or len(value) != batch:
            raise EnvironmentFault(
                f"{self._path}: expected a dictionary of arrays or {batch} dictionaries, got {_described(value)}"
            )
        for key, child in self._children.items():
            for entry in value:
                if key not in entry:
                    raise _missing_key(self._path, key, entry)
            child.read([entry[key] for entry in value], batch, True, into)


class _TupleNode:
    def __init__(self, path: str, children: Sequence[_Node]) -> None:
        self._path = path
        self._children = list(children)
        self._nested = all(isinstance(child, _TupleNode) for child in children)

    def read(self, value: Any, batch: int, each: bool, into: dict[str, Array]) -> None:
        width = len(self._children)
        if not isinstance(value, tuple | list | np.ndarray):
            raise self._fault(value, batch)
        rows = len(value) == batch and _is_row_of(value, (tuple, list)) and all(len(entry) == width for entry in value)
        if rows and (each or width != batch or not self._nested):
            for index, child in enumerate(self._children):
                child.read([entry[index] for entry in value], batch, True, into)
        elif not each and len(value) == width:
            for child, part in zip(self._children, value, strict=True):
                child.read(part, batch, False, into)
        else:
            raise self._fault(value, batch)

    def write(self, columns: Columns) -> Any:
        return tuple(child.write(columns) for child in self._children)

    def write_one(self, columns: Columns, index: int) -> Any:
        return tuple(child.write_one(columns, index) for child in self._children)

    def _fault(self, value: Any, batch: int) -> EnvironmentFault:
        width = len(self._children)
        return EnvironmentFault(
            f"{self._path}: expected a tuple of {width} arrays or {batch} tuples of {width}, got {_described(value)}"
        )


def _is_row_of(value: Any, kind: type[Any] | tuple[type[Any], ...]) -> bool:
    """Whether `value` is a sequence with one entry of `kind` for each environment."""
    return isinstance(value, tuple | list | np.ndarray) and all(isinstance(entry, kind) for entry in value)


def _missing_key(path: str, key: str, value: Mapping[str, Any]) -> EnvironmentFault:
    return EnvironmentFault(f"{path}: the key {key!r} of its Dict space is missing, got keys {sorted(value)}")


def _described(value: Any) -> str:
    length = f" of length {len(value)}" if hasattr(value, "__len__") else ""
    return f"{type(value).__name__}{length}"
