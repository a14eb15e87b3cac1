"""Schedules: numbers that change with a counter (environment steps, updates) and with nothing else.

So a run that is restarted goes on where it was, and nobody keeps a schedule's state.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Protocol

from rollstream.config import suggestion
from rollstream.errors import ConfigError

__all__ = ["Constant", "Cosine", "Exponential", "Linear", "Piecewise", "Polynomial", "Schedule", "schedule"]


class Schedule(Protocol):
    """A number for every value of a counter."""

    def at(self, count: float) -> float:
        """The number when the counter stands at `count`."""
        ...


@dataclass(frozen=True, slots=True)
class Constant:
    """Always `value`."""

    value: float

    def at(self, count: float) -> float:
        """`value`."""
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """From `start` to `end` in a straight line over `over_steps` of the counter, then `end`.

    >>> Linear(start=1.0, end=0.0, over_steps=100).at(25)
    0.75
    """

    start: float
    end: float
    over_steps: float

    def __post_init__(self) -> None:
        _require_length(self)

    def at(self, count: float) -> float:
        """start + (end - start) share."""
        return self.start + (self.end - self.start) * _share(count, self.over_steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Polynomial:
    """end + (start - end) (1 - share)^power: fast first and slow in the end for a power above 1, the other way below.

    >>> Polynomial(start=1.0, end=0.0, over_steps=100, power=2.0).at(50)
    0.25
    """

    start: float
    end: float
    over_steps: float
    power: float

    def __post_init__(self) -> None:
        _require_length(self)
        if not self.power > 0:
            raise ConfigError(f"a polynomial schedule needs power > 0, got {self.power:g}")

    def at(self, count: float) -> float:
        """See the class."""
        return self.end + (self.start - self.end) * math.pow(1.0 - _share(count, self.over_steps), self.power)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential:
    """From `start` to `end` by an equal factor each step, over `over_steps` of the counter, then `end`; both above 0.

    >>> Exponential(start=1.0, end=0.01, over_steps=100).at(50)
    0.1
    """

    start: float
    end: float
    over_steps: float

    def __post_init__(self) -> None:
        _require_length(self)
        if not (self.start > 0 and self.end > 0):
            raise ConfigError(f"an exponential schedule needs start and end > 0, got {self.start:g} and {self.end:g}")

    def at(self, count: float) -> float:
        """start (end / start)^share."""
        return self.start * math.pow(self.end / self.start, _share(count, self.over_steps))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosine:
    """From `start` to `end` along half a cosine: slow at both ends (Loshchilov & Hutter 2017, arXiv 1608.03983, equation 5).

    >>> Cosine(start=1.0, end=0.0, over_steps=100).at(50)
    0.5
    """

    start: float
    end: float
    over_steps: float

    def __post_init__(self) -> None:
        _require_length(self)

    def at(self, count: float) -> float:
        """end + (start - end) (1 + cos(pi share)) / 2."""
        return self.end + (self.start - self.end) * 0.5 * (1.0 + math.cos(math.pi * _share(count, self.over_steps)))


@dataclass(frozen=True, slots=True)
class Piecewise:
    """values[0] until the counter reaches boundaries[0], then values[1], and so on.

    >>> Piecewise((1.0, 0.1), boundaries=(1_000,)).at(1_000)
    0.1
    """

    values: tuple[float, ...]
    _: KW_ONLY
    boundaries: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.boundaries) + 1:
            raise ConfigError(
                f"a piecewise schedule needs one value more than boundaries, got {len(self.values)} and {len(self.boundaries)}"
            )
        if any(later <= earlier for earlier, later in zip(self.boundaries, self.boundaries[1:], strict=False)):
            raise ConfigError(f"boundaries of a piecewise schedule must rise, got {list(self.boundaries)}")

    def at(self, count: float) -> float:
        """See the class."""
        return self.values[bisect.bisect_right(self.boundaries, count)]


_KINDS: Mapping[str, type[Any]] = {
    "constant": Constant,
    "linear": Linear,
    "polynomial": Polynomial,
    "exponential": Exponential,
    "cosine": Cosine,
    "piecewise": Piecewise,
}


def schedule(form: float | Mapping[str, Any] | Schedule) -> Schedule:
    """A schedule from its short form: a number, or a mapping that names its kind; a schedule stays as it is.

    >>> schedule({"kind": "linear", "start": 1e-3, "end": 0.0, "over_steps": 1_000_000}).at(500_000)
    0.0005

    Raises:
        ConfigError: an unknown kind, or settings that the kind lacks or does not know.
    """
    if isinstance(form, bool) or not isinstance(form, (int, float, Mapping)):
        if hasattr(form, "at"):
            return form
        raise ConfigError(f"a schedule is a number or a mapping with a kind ({', '.join(_KINDS)}), got {form!r}")
    if not isinstance(form, Mapping):
        return Constant(float(form))
    kind = str(form.get("kind", ""))
    made = _KINDS.get(kind)
    if made is None:
        raise ConfigError(f"a schedule cannot be of kind {kind!r}{suggestion(kind, list(_KINDS))}")
    settings = {name: tuple(value) if isinstance(value, list) else value for name, value in form.items() if name != "kind"}
    wanted = [field.name for field in fields(made) if field.name != "_"]
    if set(settings) != set(wanted):
        raise ConfigError(f"a {kind} schedule takes {', '.join(wanted)}; got {', '.join(sorted(settings)) or 'nothing'}")
    for name, value in settings.items():
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                raise ConfigError(f"{name} of a {kind} schedule must be a number, got {number!r}")
    built: Schedule = made(**settings)
    return built


def _share(count: float, over_steps: float) -> float:
    return min(1.0, max(0.0, count / over_steps))


def _require_length(made: Linear | Polynomial | Exponential | Cosine) -> None:
    if not made.over_steps > 0:
        raise ConfigError(f"a schedule that changes needs over_steps > 0, got {made.over_steps:g}; for none give a number")
