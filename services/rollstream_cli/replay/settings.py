"""`limiter.samples_per_insert=4 max_items=1000` as the fields that a PATCH takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollstream.config import suggestion
from rollstream.errors import ConfigError
from rollstream_cli.document import parse_value

__all__ = ["changed_fields"]


def changed_fields(changes: Sequence[str], *, present: Mapping[str, Any]) -> dict[str, Any]:
    """Whole fields of the table's spec, with the changes in them.

    A new `kind` of sampler, remover or limiter starts from that kind's defaults, because the options of another do not fit it.

    Raises:
        ConfigError: a change is no KEY=VALUE, or names a field that the spec has not.

    >>> changed_fields(["limiter.min_items=5"], present={"limiter": {"kind": "min_size", "min_items": 1}})
    {'limiter': {'kind': 'min_size', 'min_items': 5}}
    """
    fields: dict[str, Any] = {}
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise ConfigError(f"a change of a table is KEY=VALUE, such as max_items=1000, got {change!r}")
        name, _, inner = key.partition(".")
        if name not in present:
            raise ConfigError(f"a table has no setting {name!r}{suggestion(name, list(present))}")
        value = parse_value(text)
        if not inner:
            fields[name] = {"kind": value} if _has_kinds(present[name]) and isinstance(value, str) else value
            continue
        if not isinstance(present[name], Mapping):
            raise ConfigError(f"{name} of a table has no settings inside, got {key!r}; set {name}=VALUE")
        if inner == "kind":
            fields[name] = {"kind": value}
        else:
            fields[name] = {**fields.get(name, present[name]), inner: value}
    return fields


def _has_kinds(value: object) -> bool:
    return isinstance(value, Mapping) and "kind" in value
