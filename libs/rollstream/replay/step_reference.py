"""`step`: how a pattern says which steps of which column it takes, counted from the newest.

>>> from rollstream.replay import step
>>> step["observation"][-3:]
step['observation'][-3:]
>>> step["observation"]["camera"][-5:-1:2].places
(-5, -3)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rollstream.errors import ConfigError
from rollstream.replay.view import ColumnView

__all__ = ["StepSlice", "flat_slices", "step"]

Place: TypeAlias = int | slice | Sequence[int]
Slices: TypeAlias = Mapping[str, "StepSlice | Slices"]


@dataclass(frozen=True, slots=True, repr=False)
class StepSlice:
    """Some steps of one column: one (`index`), some (`indices`), or a slice."""

    column: str
    places: tuple[int, ...]
    index: bool = False
    stride: int = 0

    def view(self, name: str, *, newest: int) -> ColumnView:
        """The view of a sample's column `name`, when the item's newest row is the step `newest` (-1, or before)."""
        places = tuple(place - newest - 1 for place in self.places)
        if self.index:
            return ColumnView(name=name, column=self.column, index=places[0])
        if self.stride:
            stop = places[-1] + 1
            return ColumnView(name=name, column=self.column, start=places[0], stop=stop or None, step=self.stride)
        return ColumnView(name=name, column=self.column, indices=places)

    def __repr__(self) -> str:
        if self.index:
            return f"step[{self.column!r}][{self.places[0]}]"
        if not self.stride:
            return f"step[{self.column!r}][{list(self.places)}]"
        stop = self.places[-1] + 1
        stride = f":{self.stride}" if self.stride > 1 else ""
        return f"step[{self.column!r}][{self.places[0]}:{stop or ''}{stride}]"


class _Column:
    """A column of the step, or a group of columns."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getitem__(self, place: Place | str) -> Any:
        if isinstance(place, str):
            return _Column(f"{self._name}.{place}" if self._name else place)
        if not self._name:
            raise ConfigError(f"step[{place!r}]: name a column first, e.g. step['observation'][-1]")
        if isinstance(place, slice):
            return self._sliced(place)
        places = (place,) if isinstance(place, int) else tuple(place)
        if not places or any(one >= 0 for one in places):
            raise ConfigError(
                f"step[{self._name!r}][{place!r}]: steps are counted back from the newest, which is -1; give numbers below 0"
            )
        return StepSlice(self._name, places, index=isinstance(place, int))

    def _sliced(self, place: slice) -> StepSlice:
        start, stop, stride = place.start, place.stop, 1 if place.step is None else place.step
        good = start is not None and start < 0 and (stop is None or start < stop < 0) and stride >= 1
        if not good:
            raise ConfigError(
                f"step[{self._name!r}][{start}:{stop}:{stride}]: a slice starts below 0, ends below 0 or at the newest step, and "
                "holds at least one step, e.g. [-5:-1]"
            )
        return StepSlice(self._name, tuple(range(start, 0 if stop is None else stop, stride)), stride=stride)


step: Any = _Column("")
"""The step that patterns refer to."""


def flat_slices(pattern: Mapping[str, Any], prefix: str = "") -> dict[str, StepSlice]:
    """Slices by dotted name of a pattern of nested mappings."""
    found: dict[str, StepSlice] = {}
    for key, value in pattern.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            found |= flat_slices(value, f"{name}.")
        elif isinstance(value, StepSlice):
            found[name] = value
        else:
            raise ConfigError(
                f"pattern column {name!r} must be a slice of a step's column, e.g. step['action'][-1], got {value!r}"
            )
    return found
