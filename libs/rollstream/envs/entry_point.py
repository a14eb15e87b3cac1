"""Which environment an id means, and whether its code may be imported here.

    CartPole-v1              a Gymnasium id
    my_games:Maze-v0         a Gymnasium id that its module registers: the module must be allowed
    envpool:Pong-v5          EnvPool
    my_games.maze:Maze       a class or function that builds the environment: the module must be allowed

Experiments come over the network, so importing a module because an experiment names it is refused unless the operator
allowed that module. Environments are always named, never passed: each actor builds its own copies, nothing is pickled.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from rollstream.errors import ConfigError

__all__ = ["ENVPOOL_PREFIX", "import_named", "is_entry_point", "require_allowed", "resolve"]

ENVPOOL_PREFIX = "envpool:"
ENTRY_POINT = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")


def is_entry_point(environment_id: str) -> bool:
    """Whether the id is `package.module:callable` (and neither EnvPool's nor a Gymnasium id with a module)."""
    return not environment_id.startswith(ENVPOOL_PREFIX) and ENTRY_POINT.match(environment_id) is not None


def require_allowed(environment_id: str, *, allow: Sequence[str]) -> None:
    """Raise `ConfigError` unless the module in front of the colon is in `allow`, or inside of a package that is."""
    module = environment_id.partition(":")[0]
    if any(module == name or module.startswith(f"{name}.") or environment_id == name for name in allow):
        return
    listed = ", ".join(allow) or "none"
    raise ConfigError(
        f"environment {environment_id!r}: the module {module!r} is not allowed here (allowed: {listed}); "
        "add it to ROLLSTREAM_ENVIRONMENT_MODULES of control, learner and actors"
    )


def resolve(environment_id: str, *, allow: Sequence[str]) -> Callable[..., Any]:
    """The callable that an entry point names.

    Raises:
        ConfigError: not allowed, cannot be imported, or is an instance instead of something that builds one.
    """
    require_allowed(environment_id, allow=allow)
    found = import_named(environment_id, path=environment_id.partition(":")[2])
    if hasattr(found, "step") and not isinstance(found, type):
        raise ConfigError(
            f"environment {environment_id!r} is an instance of {type(found).__name__}; name its class or a function "
            "that builds it: each actor builds its own copies"
        )
    if not callable(found):
        raise ConfigError(f"environment {environment_id!r} is a {type(found).__name__}, not a class or function")
    return found  # type: ignore[no-any-return]


def import_named(environment_id: str, *, path: str = "") -> Any:
    """The module in front of the colon, or what stands under the dotted `path` in it.

    Raises:
        ConfigError: there is no such thing here.
    """
    try:
        found: Any = importlib.import_module(environment_id.partition(":")[0])
        for part in filter(None, path.split(".")):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"environment {environment_id!r} cannot be imported: {error}; the package must be installed where actors run"
        ) from error
    return found
