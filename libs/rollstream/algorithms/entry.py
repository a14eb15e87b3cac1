"""What is known of one algorithm: where its three pages are, and what it is for."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from rollstream.errors import ConfigError
from rollstream.user_code import error_line, user_traceback

__all__ = ["GROUP", "Algorithm", "import_failed"]

GROUP = "rollstream.algorithms"
"""Package of our own algorithms, and group of the entry points of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """One algorithm: a package of three pages (`config.py`, `agent.py`, `flow.py`)."""

    name: str
    package: str
    """Package of the pages, or the module that is all of them."""
    settings: str
    """Class of its settings, in `config.py`."""
    agent: str
    """Class of its agent, in `agent.py`."""
    needs_replay: bool
    """True when its flow has tables."""
    summary: str = ""
    """What it is, in one line; its paper."""
    spaces: str = ""
    """Actions and observations that it is for, e.g. `any actions; any observations` or `one Discrete action; any observations`."""
    policy: str = ""
    """Whose experience it learns from: `on-policy`, `off-policy` or `offline`."""
    status: str = "new"
    """`proven`: reaches its stated return in tests/learning with every seed; `new`: not measured yet."""

    def page(self, name: str) -> Any:
        """The module `config`, `agent` or `flow` of this algorithm; one in a single file is all three."""
        module = f"{self.package}.{name}"
        try:
            found = importlib.import_module(self.package)
            return importlib.import_module(module) if hasattr(found, "__path__") else found
        except Exception as error:
            raise import_failed(self.name, module, error) from error

    def member(self, page: str, name: str) -> Any:
        """What is called `name` on a page."""
        module = self.page(page)
        if not hasattr(module, name):
            raise ConfigError(f"algorithm {self.name!r}: {module.__name__} has no {name!r}; define it, or correct its Algorithm")
        return getattr(module, name)


def import_failed(name: str, what: str, error: Exception) -> ConfigError:
    """The error that tells why a page of the algorithm called `name` is not there."""
    return ConfigError(f"algorithm {name!r}: {what} cannot be imported: {error_line(error)}\n{user_traceback(error)}".rstrip())
