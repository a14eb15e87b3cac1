"""A trial before a run begins: agent, tables and flow are built once and thrown away, so that what cannot work is refused at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.algorithms.registry import make_agent, make_flow
from rollstream.errors import ConfigError, RollstreamError
from rollstream.flow import Description
from rollstream.spaces import Leaf, row_spec
from rollstream.user_code import error_line, user_traceback

__all__ = ["try_out"]


def try_out(
    name: str, settings: Mapping[str, Any], *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...], actors: int = 1
) -> None:
    """Raise a `ConfigError` when the algorithm called `name` cannot run with these settings and spaces.

    What its own code raises is told with its traceback. Nothing is learned here: torch is not imported.
    """
    try:
        agent = make_agent(name, settings, observation=observation, actions=actions)
        agent.tables(row_spec(observation, actions, extra=agent.extra_columns))
        Description(make_flow(name, agent, actors=actors), tables=agent.table_names)
    except ConfigError:
        raise
    except Exception as error:
        what = "" if isinstance(error, RollstreamError) else "raised "
        raise ConfigError(f"algorithm {name!r} {what}{error_line(error)}\n{user_traceback(error)}".rstrip()) from error
