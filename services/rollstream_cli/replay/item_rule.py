"""`n_step:5`, `sequence:80,40,burn_in=20` on the command line: how recorded rows become items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rollstream.config import suggestion
from rollstream.errors import ConfigError
from rollstream.replay.rules import EachRow, Episode, ItemRule, NStep, Sequence, Transition
from rollstream_cli.document import parse_value

__all__ = ["RULES", "item_rule"]

RULES: dict[str, Callable[..., ItemRule]] = {
    "transition": Transition,
    "n_step": NStep,
    "sequence": Sequence,
    "episode": Episode,
    "each_row": EachRow,
}


def item_rule(text: str) -> ItemRule:
    """The rule that `text` names, with its arguments after a colon.

    Raises:
        ConfigError: there is no such rule, or it takes other arguments.

    >>> item_rule("sequence:8,4,burn_in=2")
    Sequence(length=8, stride=4, burn_in=2, tail='short', history=0, priority=None)
    """
    name, _, arguments = text.partition(":")
    if name not in RULES:
        raise ConfigError(f"there is no item rule {name!r}{suggestion(name, list(RULES))}")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument in filter(None, arguments.split(",")):
        key, equals, value = argument.partition("=")
        if equals:
            named[key.strip()] = parse_value(value.strip())
        else:
            positional.append(parse_value(argument.strip()))
    try:
        return RULES[name](*positional, **named)
    except TypeError as error:
        raise ConfigError(f"item rule {text!r} has the wrong arguments: {error}; such as n_step:5 or sequence:80,40") from error
