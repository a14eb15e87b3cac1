"""Settings and specs as tables: each field with its type, default and sentence, all from the model."""

from __future__ import annotations

import importlib
import json
import types
import typing
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from rollstream_cli.reference.markdown import code, table

__all__ = ["environment_variables", "fields_table", "settings_of"]

HEADER = ("name", "type", "default", "meaning")
BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "min_length": "length >="}


def settings_of(role: str) -> type[BaseModel]:
    """The settings of the service that plays `role`. Services do not know each other, so it is found by its name."""
    module = importlib.import_module(f"rollstream_{role}.settings")
    found: type[BaseModel] = getattr(module, "CommonSettings" if role == "service" else f"{role.title()}Settings")
    return found


def environment_variables(model: type[BaseModel], *, without: type[BaseModel] | None = None) -> str:
    """The environment variables that `model` reads, except for those that `without` reads too."""
    left_out = set(without.model_fields) if without is not None else set()
    fields = {name: field for name, field in model.model_fields.items() if name not in left_out}
    return table(HEADER, [_row(f"ROLLSTREAM_{name.upper()}", field) for name, field in fields.items()])


def fields_table(model: type[BaseModel], *, leave_out: Sequence[str] = ()) -> str:
    """Fields of a spec; those of nested specs under dotted names."""
    return table(HEADER, [_row(name, field) for name, field in _flat(model) if name not in leave_out])


def _flat(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _flat(inner, f"{path}{name}.")
        else:
            yield f"{path}{name}", field


def _row(name: str, field: FieldInfo) -> tuple[str, str, str, str]:
    return code(name), _type_text(field), _default_text(field), field.description or ""


def _type_text(field: FieldInfo) -> str:
    return ", ".join([_name_of_type(field.annotation), *_bounds(field.metadata)])


def _bounds(marks: Iterable[Any]) -> list[str]:
    return [
        f"{sign} {_number(getattr(mark, name))}"
        for mark in marks
        for name, sign in BOUNDS.items()
        if getattr(mark, name, None) is not None
    ]


def _name_of_type(annotation: Any) -> str:
    """
    >>> _name_of_type(int | None), _name_of_type(tuple[int, ...]), _name_of_type(Literal["a", "b"])
    ('whole number or null', 'list of whole number', '`a`, `b`')
    >>> from pydantic import Field
    >>> _name_of_type(tuple[typing.Annotated[int, Field(ge=1)], ...])
    'list of whole number, >= 1'
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(code(argument) for argument in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(_name_of_type(argument) for argument in arguments)
    if origin is typing.Annotated:
        marks = [inner for mark in arguments[1:] for inner in getattr(mark, "metadata", [mark])]
        return ", ".join([_name_of_type(arguments[0]), *_bounds(marks)])
    if origin in (tuple, list):
        return f"list of {_name_of_type(arguments[0])}"
    if origin is dict:
        return "mapping"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return code(annotation.__name__)
    return TYPES.get(annotation, code(getattr(annotation, "__name__", annotation)))


TYPES = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    SecretStr: "text (secret)",
    type(None): "null",
}


def _default_text(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True) if not field.is_required() else PydanticUndefined
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return code(json.dumps(value.model_dump(mode="json")))
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, float):
        return code(_number(value))
    if value is None or isinstance(value, bool):
        return code(json.dumps(value))
    if isinstance(value, (tuple, list)):
        return code(list(value))
    return code(value if str(value) else "(empty)")


def _number(value: float) -> str:
    """
    >>> _number(30.0), _number(1e-3), _number(1 << 30)
    ('30', '0.001', '1073741824')
    """
    return str(value) if isinstance(value, int) else format(value, ".12g")
