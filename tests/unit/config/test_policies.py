"""Who plays whom: patterns of names, in the order of the policies."""

from __future__ import annotations

import pytest

from rollstream.config import PolicySettings, agents_by_policy
from rollstream.errors import ConfigError


def test_the_first_policy_with_a_pattern_that_fits_plays_an_agent() -> None:
    policies = {"wolf": PolicySettings(agents=("wolf_[01]",)), "rest": PolicySettings()}
    found = agents_by_policy(policies, ["sheep_0", "wolf_0", "wolf_1", "wolf_2"])
    assert found == {"wolf": ("wolf_0", "wolf_1"), "rest": ("sheep_0", "wolf_2")}


def test_an_agent_that_nobody_plays_is_named() -> None:
    with pytest.raises(ConfigError, match="no policy plays agent 'sheep_0'; add a pattern that fits it to one of: wolf"):
        agents_by_policy({"wolf": PolicySettings(agents=("wolf_*",))}, ["sheep_0"])


def test_a_policy_that_plays_nobody_is_named() -> None:
    with pytest.raises(ConfigError, match=r"settings.policies.late: no agent is left for \*; there are: a"):
        agents_by_policy({"shared": PolicySettings(), "late": PolicySettings()}, ["a"])
