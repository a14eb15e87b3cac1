"""Modules from which environments may come on this machine."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["allowed_modules"]


def allowed_modules(environment: Mapping[str, str], environment_id: str) -> tuple[str, ...]:
    """What ROLLSTREAM_ENVIRONMENT_MODULES in `environment` allows, and the module that the user names on their own machine.

    >>> allowed_modules({"ROLLSTREAM_ENVIRONMENT_MODULES": "games"}, "my_games.maze:Maze")
    ('games', 'my_games.maze')
    >>> allowed_modules({}, "envpool:Pong-v5")
    ()
    """
    names = [name.strip() for name in environment.get("ROLLSTREAM_ENVIRONMENT_MODULES", "").split(",")]
    module, colon, _ = environment_id.partition(":")
    if colon and module != "envpool":
        names.append(module)
    return tuple(name for name in dict.fromkeys(names) if name)
