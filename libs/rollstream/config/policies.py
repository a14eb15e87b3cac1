"""Which agents of an environment a policy plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from pydantic import Field

from rollstream.config.base import Frozen
from rollstream.errors import ConfigError

__all__ = ["PolicySettings", "agents_by_policy"]


class PolicySettings(Frozen):
    """One policy of an experiment with several agents."""

    agents: tuple[str, ...] = Field(default=("*",), min_length=1)
    """Patterns of the names of its agents, e.g. ["adversary_*"]; all, because one policy for all is where to begin."""


def agents_by_policy(policies: Mapping[str, PolicySettings], agents: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Names of the agents of each policy; the first policy with a pattern that fits plays an agent.

    >>> agents_by_policy({"wolf": PolicySettings(agents=("wolf_*",)), "rest": PolicySettings()}, ["wolf_0", "sheep_0"])
    {'wolf': ('wolf_0',), 'rest': ('sheep_0',)}

    Raises:
        ConfigError: an agent that no policy plays, or a policy that plays none.
    """
    found: dict[str, list[str]] = {name: [] for name in policies}
    for agent in agents:
        name = next((name for name, policy in policies.items() if _plays(policy, agent)), None)
        if name is None:
            raise ConfigError(
                f"settings.policies: no policy plays agent {agent!r}; add a pattern that fits it to one of: {', '.join(policies)}"
            )
        found[name].append(agent)
    for name, played in found.items():
        if not played:
            raise ConfigError(
                f"settings.policies.{name}: no agent is left for {', '.join(policies[name].agents)}; there are: {', '.join(agents)}"
            )
    return {name: tuple(played) for name, played in found.items()}


def _plays(policy: PolicySettings, agent: str) -> bool:
    return any(fnmatchcase(agent, pattern) for pattern in policy.agents)
