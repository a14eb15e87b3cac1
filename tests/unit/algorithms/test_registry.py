"""The registry names algorithms and refuses others."""

from __future__ import annotations

import pytest

from rollstream.algorithms import algorithm, known, needs_replay, settings_type
from rollstream.config import load
from rollstream.errors import ConfigError


def test_ppo_and_dqn_are_known() -> None:
    assert known() == ["dqn", "ppo"]
    assert needs_replay("dqn") and not needs_replay("ppo")


def test_an_unknown_algorithm_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="unknown algorithm 'dqnn'; did you mean 'dqn'"):
        algorithm("dqnn")


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"min_items \(10\) must be <= table_items \(5\)"):
        load(settings_type("dqn"), {"min_items": 10, "table_items": 5}, what="settings of dqn")
    with pytest.raises(ConfigError, match=r"epsilon_end \(0.5\) must be <= epsilon_start \(0.1\)"):
        load(settings_type("dqn"), {"epsilon_end": 0.5, "epsilon_start": 0.1}, what="settings of dqn")


def test_an_unknown_setting_is_refused_with_a_suggestion() -> None:
    with pytest.raises(ConfigError, match="settings.learning_rat: unknown setting; did you mean 'learning_rate'"):
        load(settings_type("ppo"), {"learning_rat": 1}, what="settings of ppo", path="settings")
