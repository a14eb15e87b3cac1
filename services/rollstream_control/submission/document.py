"""Reading documents that come from outside: JSON and YAML into plain values, with nothing in them that JSON cannot carry.

Python's JSON reader accepts `NaN` and turns `1e999` into infinity; YAML has dates, `.nan` and keys that are not text. A spec is
stored, hashed and sent on as JSON, so such values are refused here, each with its path.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

import yaml

from rollstream.errors import ConfigError, Problem

__all__ = ["bad_values", "finite", "parse_json", "parse_yaml"]

MAX_DEPTH = 64
"""Nesting of documents that is accepted: far above any spec, far below Python's recursion limit."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe reader, with `1e-3` and `1e+06` as numbers: to YAML 1.1 they are text, to everybody else numbers."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def parse_json(body: bytes, *, what: str) -> dict[str, Any]:
    """The JSON object in `body`, or a `ConfigError` that says where it is broken."""
    try:
        document = json.loads(body)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{what} is not JSON: {_reason(error)}") from error
    return _mapping(document, what=what)


def parse_yaml(text: str, *, what: str) -> dict[str, Any]:
    """The YAML mapping in `text`, or a `ConfigError` that says where it is broken."""
    try:
        document = yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{what} is not YAML: {_reason(error)}") from error
    return _mapping(document, what=what)


def bad_values(value: object, *, path: str = "", depth: int = 0) -> list[Problem]:
    """Everything in a document that JSON cannot carry."""
    if depth > MAX_DEPTH:
        return [Problem(path=path[:200], message=f"is nested more than {MAX_DEPTH} levels deep")]
    if isinstance(value, dict):
        problems = [
            Problem(path=_join(path, key), message=f"names must be text, got {key!r}")
            for key in value
            if not isinstance(key, str)
        ]
        for key, entry in value.items():
            problems += bad_values(entry, path=_join(path, key), depth=depth + 1)
        return problems
    if isinstance(value, list):
        return [
            problem
            for index, entry in enumerate(value)
            for problem in bad_values(entry, path=_join(path, index), depth=depth + 1)
        ]
    if isinstance(value, float) and not math.isfinite(value):
        return [Problem(path=path, message=f"must be a finite number, got {value}")]
    if isinstance(value, str):
        return [] if _encodable(value) else [Problem(path=path, message="contains half a surrogate pair, which is not text")]
    if value is None or isinstance(value, bool | int | float):
        return []
    return [Problem(path=path, message=f"must be text, number, true, false, null, list or mapping, got {type(value).__name__}")]


def finite(value: Any) -> Any:
    """`value` with null for every NaN and infinity, so that any JSON reader accepts it.

    >>> finite({"mean_return": float("nan"), "episodes": 0})
    {'mean_return': None, 'episodes': 0}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return value


def _mapping(document: object, *, what: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise ConfigError(f"{what} must be a mapping of names to values, got {type(document).__name__}")
    return document


def _join(path: str, part: object) -> str:
    return f"{path}.{part}" if path else str(part)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deep"
    return " ".join(str(error).split())
