"""When a pattern makes an item: comparisons of what is known of the newest step.

>>> from rollstream.replay import condition
>>> condition.step_index % 4 == 3
Condition(step_index % 4 == 3)
>>> condition.data("reward_sign") > 0
Condition(data('reward_sign') > 0)
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError

__all__ = ["Condition", "Known", "buffer_length", "data", "is_end_episode", "step_index", "steps_since_applied"]

Kind: TypeAlias = Literal["step_index", "steps_since_applied", "buffer_length", "is_end_episode", "data"]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True, repr=False)
class Condition:
    """A comparison that must hold; with `modulo`, of the remainder."""

    kind: Kind
    comparison: str
    value: int
    modulo: int = 0
    column: str = ""

    def holds(self, known: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Where it holds. Shapes: [K] -> [K]."""
        compared = known % self.modulo if self.modulo else known
        return np.asarray(COMPARISONS[self.comparison](compared, self.value))

    def __repr__(self) -> str:
        remainder = f" % {self.modulo}" if self.modulo else ""
        name = f"data({self.column!r})" if self.kind == "data" else self.kind
        return f"Condition({name}{remainder} {self.comparison} {self.value})"


class Known:
    """Something that is known of the newest step; comparing it makes a `Condition`."""

    __slots__ = ("_column", "_kind", "_modulo")

    def __init__(self, kind: Kind, *, column: str = "", modulo: int = 0) -> None:
        self._kind = kind
        self._column = column
        self._modulo = modulo

    def __mod__(self, modulo: int) -> Known:
        if modulo < 1 or self._modulo:
            raise ConfigError(f"condition on {self._kind}: % takes one number >= 1, got {modulo}")
        return Known(self._kind, column=self._column, modulo=modulo)

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return self._condition("==", value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return self._condition("!=", value)

    def __ge__(self, value: int) -> Condition:
        return self._condition(">=", value)

    def __gt__(self, value: int) -> Condition:
        return self._condition(">", value)

    def __le__(self, value: int) -> Condition:
        return self._condition("<=", value)

    def __lt__(self, value: int) -> Condition:
        return self._condition("<", value)

    __hash__ = None  # type: ignore[assignment]

    def _condition(self, comparison: str, value: object) -> Condition:
        if not isinstance(value, int | np.integer | np.bool_):
            raise ConfigError(f"condition on {self._kind}: compare with a whole number or a bool, got {value!r}")
        return Condition(self._kind, comparison, int(value), self._modulo, self._column)


step_index = Known("step_index")
"""Place of the newest step in its episode, from 0."""
steps_since_applied = Known("steps_since_applied")
"""Steps since the pattern last made an item of this environment; before the first of an episode, the steps of the episode."""
buffer_length = Known("buffer_length")
"""Steps of the episode up to the newest. That there are as many as the pattern needs goes without saying."""
is_end_episode = Known("is_end_episode")
"""Whether the newest step is the last of its episode. With `== True` the pattern is applied once an episode, at its end."""


def data(column: str) -> Known:
    """The newest step's value of a scalar column of whole numbers or bools."""
    return Known("data", column=column)
