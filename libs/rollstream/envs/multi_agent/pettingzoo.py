"""PettingZoo's own environments, by the name of their module: `pettingzoo:sisl.pursuit_v4`, `pettingzoo:mpe.simple_spread_v3`.

PettingZoo ships its families as modules with a function `parallel_env`. The family mpe became a package of its own, `mpe2`, and keeps
its name here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from rollstream.errors import ConfigError

__all__ = ["PETTINGZOO_PREFIX", "pettingzoo_builder"]

PETTINGZOO_PREFIX = "pettingzoo:"
NAME = re.compile(r"^[a-z_]\w*\.[a-z_]\w*$")
MOVED = {"mpe": "mpe2"}
"""Families that are packages now."""


def pettingzoo_builder(environment_id: str) -> Callable[..., Any]:
    """The function that builds the environment.

    Raises:
        ConfigError: no such name, or the package it is in is not installed.
    """
    name = environment_id.removeprefix(PETTINGZOO_PREFIX)
    if not NAME.match(name):
        raise ConfigError(
            f"environment {environment_id!r}: name it as pettingzoo:<family>.<module>, e.g. pettingzoo:sisl.pursuit_v4"
        )
    family, _, module = name.partition(".")
    path = f"{MOVED.get(family, f'pettingzoo.{family}')}.{module}"
    try:
        found: Callable[..., Any] = importlib.import_module(path).parallel_env
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"environment {environment_id!r} cannot be imported: {error}; install rollstream[multi-agent], and what the family needs"
        ) from error
    return found
