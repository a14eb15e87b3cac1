"""Which algorithms there are: our own, and those of installed packages.

A package brings an algorithm by an entry point of the group `rollstream.algorithms`, which names an `Algorithm`:

    [project.entry-points."rollstream.algorithms"]
    my-ppo = "my_package.my_ppo:ALGORITHM"

Only what is installed can be named, so a spec from the network never chooses what is imported. Pages are imported when asked for.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rollstream.algorithms.entry import GROUP, Algorithm, import_failed
from rollstream.algorithms.own import OWN
from rollstream.config import Frozen, load, suggestion
from rollstream.errors import ConfigError
from rollstream.spaces import Leaf

if TYPE_CHECKING:
    from rollstream.algorithms.agent import Agent
    from rollstream.flow import Stream

__all__ = [
    "Algorithm",
    "algorithm",
    "known",
    "make_agent",
    "make_flow",
    "needs_replay",
    "register",
    "settings_type",
    "takes_actors",
]


ALGORITHMS = {entry.name: entry for entry in OWN}


def register(entry: Algorithm) -> None:
    """Let this process know an algorithm: for scripts, notebooks and tests, which train inline. A cell needs an installed package."""
    if entry.name in ALGORITHMS and ALGORITHMS[entry.name] != entry:
        raise ConfigError(
            f"there is an algorithm {entry.name!r} already, of {ALGORITHMS[entry.name].package}; choose another name"
        )
    ALGORITHMS[entry.name] = entry


def known() -> list[str]:
    """Names of all algorithms."""
    return sorted({*ALGORITHMS, *(entry.name for entry in importlib.metadata.entry_points(group=GROUP))})


def algorithm(name: str) -> Algorithm:
    """The algorithm called `name`; a `ConfigError` with a suggestion when there is none."""
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    for entry in importlib.metadata.entry_points(group=GROUP, name=name):
        try:
            found = entry.load()
        except Exception as error:
            raise import_failed(name, entry.value, error) from error
        if not isinstance(found, Algorithm):
            raise ConfigError(
                f"entry point {name!r} of {GROUP} must name an Algorithm, {entry.value} is a {type(found).__name__}; "
                "see docs/algorithms.md"
            )
        return found
    raise ConfigError(f"unknown algorithm {name!r}{suggestion(name, known())}")


def settings_type(name: str) -> type[Frozen]:
    """The class of settings of the algorithm called `name`."""
    entry = algorithm(name)
    found: type[Frozen] = entry.member("config", entry.settings)
    return found


def make_agent(name: str, settings: Mapping[str, Any], *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> Agent:
    """The agent of the algorithm called `name`, for an environment with these leaves.

    Raises:
        ConfigError: unknown algorithm; every bad setting by its path `settings.<name>`.
        SpaceError: the environment's spaces do not suit the algorithm.
    """
    entry = algorithm(name)
    config = load(settings_type(name), settings, what=f"settings of {name}", path="settings")
    made: Agent = entry.member("agent", entry.agent)(config, observation=observation, actions=actions)
    return made


def make_flow(name: str, agent: Agent, *, actors: int) -> Stream[Any]:
    """The flow of the algorithm called `name`, with the settings of `agent`; its tables are handed over by name."""
    from rollstream.flow import Actors, LearnerHandle, TableHandle

    describe = algorithm(name).member("flow", "flow")
    tables = {table: TableHandle(name=table) for table in agent.table_names}
    stream: Stream[Any] = describe(agent.config, actors=Actors(count=actors), learner=LearnerHandle(), **tables)
    return stream


def needs_replay(name: str) -> bool:
    """True when the algorithm called `name` uses replay tables."""
    return algorithm(name).needs_replay


def takes_actors(name: str) -> bool:
    """False when the algorithm called `name` learns from recorded data alone, so that actors would have nothing to do."""
    entry = ALGORITHMS.get(name)
    return entry is None or entry.policy != "offline"
