"""The base of every setting and spec: frozen, typed, nothing unknown, and errors that list every bad field at once.

A field's docstring is its description (pydantic's `use_attribute_docstrings`), so a setting is declared, explained and
defaulted in one place, and `--help`, the REST schema and the values schema of the chart are made from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from rollstream.errors import ConfigError, Problem

__all__ = ["Frozen", "load", "suggestion"]

Model = TypeVar("Model", bound=BaseModel)


class Frozen(BaseModel):
    """A typed record that cannot change and accepts no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, validate_default=True)


def suggestion(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?` when `name` is close to a known name, otherwise the list of what is known."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(sorted(known))}" if known else ""


def load(model: type[Model], data: Mapping[str, Any], *, what: str, path: str = "") -> Model:
    """Validate `data` as `model`, or raise one `ConfigError` that lists every bad field with its path.

    Args:
        what: how a person calls the thing, e.g. `experiment spec`; stands at the start of the message.
        path: put in front of every field's path.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = [_problem(model, entry, path) for entry in error.errors(include_url=False)]
        listed = "; ".join(str(problem) for problem in problems)
        raise ConfigError(f"{what} has {len(problems)} bad field(s): {listed}", problems=problems) from error


def _problem(model: type[BaseModel], entry: Any, path: str) -> Problem:
    where = [str(part) for part in entry["loc"]]
    name = ".".join([path, *where] if path else where)
    if entry["type"] == "extra_forbidden":
        known = _fields_at(model, where[:-1])
        return Problem(path=name, message=f"unknown setting{suggestion(where[-1], known)}")
    message = entry["msg"].removeprefix("Value error, ").replace("a valid tuple", "a list")
    if entry["type"] == "missing":
        return Problem(path=name, message="is required")
    given = entry.get("input")
    return Problem(path=name, message=f"{message}, got {_short(given)}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fields_at(model: type[BaseModel], where: Sequence[str]) -> list[str]:
    """Names of the fields of the sub-model that `where` leads to; empty when it leads to something else."""
    current: type[BaseModel] | None = model
    for name in where:
        if current is None:
            return []
        if name not in current.model_fields:  # a tag of a union: stay where we are
            continue
        current = _submodel(current.model_fields[name].annotation)
    return list(current.model_fields) if current is not None else []


def _submodel(annotation: object) -> type[BaseModel] | None:
    candidates = [annotation, *get_args(annotation)]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
