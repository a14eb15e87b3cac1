"""Commands of the command line, with their arguments and options, as the command line itself knows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from rollstream_cli.app import app
from rollstream_cli.reference.markdown import code, section, table

__all__ = ["command_names", "command_sections", "options_of"]


def command_names() -> tuple[str, ...]:
    """Every command, e.g. `checkpoint list`."""
    return tuple(name for name, _ in _commands())


def options_of(name: str) -> frozenset[str]:
    """Spellings of the options of a command, e.g. `--json`."""
    command = dict(_commands())[name]
    return frozenset(spelling for parameter in command.params for spelling in (*parameter.opts, *parameter.secondary_opts))


def command_sections() -> str:
    """One section for each command."""
    return "\n\n".join(_section(name, command) for name, command in _commands())


def _commands() -> Iterator[tuple[str, Any]]:
    yield from _below(typer.main.get_command(app), "")


def _below(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        if getattr(inner, "commands", None):
            yield from _below(inner, f"{path}{name} ")
        else:
            yield f"{path}{name}", inner


def _section(name: str, command: Any) -> str:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join(["rollstream", name, *(_argument(argument) for argument in arguments), "[OPTIONS]"])
    rows = [(code(_argument(argument)), argument.help or "", "") for argument in arguments]
    rows += [(_spelling(option), option.help or "", _default(option)) for option in options]
    return section(
        code(f"rollstream {name}"),
        " ".join((command.help or "").split()),
        f"```text\n{usage}\n```",
        table(("argument or option", "meaning", "default"), rows),
        level=3,
    )


def _argument(argument: Any) -> str:
    name = str(argument.metavar or argument.name.upper())
    return name if argument.required else f"[{name.strip('[]')}]"


def _spelling(option: Any) -> str:
    names = ", ".join(code(name) for name in [*option.opts, *option.secondary_opts])
    kind = "" if option.is_flag else f" {option.metavar or 'VALUE'}"
    variable = f", or {code(option.envvar)}" if option.envvar else ""
    return f"{names}{kind}{variable}"


def _default(option: Any) -> str:
    if option.default is None or option.default is False:
        return ""
    return code("true" if option.default is True else option.default)
