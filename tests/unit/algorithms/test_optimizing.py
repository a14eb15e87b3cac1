"""Optimizer, schedule and rates by group come from an algorithm's settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import yaml
from gymnasium.spaces import Box, Discrete

from rollstream.algorithms import make_agent
from rollstream.algorithms.optimizing import learning_rate, optimizer
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.config import load
from rollstream.errors import ConfigError
from rollstream.graph.optimizers import Adam, AdamW, RmsProp, Sgd
from rollstream.spaces import Batch, leaves

SPACES = {"observation": leaves(Box(-1, 1, (3,)), "observation"), "actions": leaves(Discrete(2), "action")}


def _settings(**given: Any) -> PpoConfig:
    return load(PpoConfig, given, what="settings")


def test_an_optimizer_is_made_from_its_kind_and_settings() -> None:
    assert optimizer("adam") == Adam(epsilon=1e-5)
    assert optimizer({"kind": "rmsprop", "decay": 0.95, "centered": True}) == RmsProp(decay=0.95, centered=True)
    assert optimizer(_settings(optimizer="sgd").optimizer) == Sgd()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("adm", "an optimizer cannot be of kind 'adm'"),
        ({"kind": "sgd", "momentm": 0.9}, "optimizer sgd has no setting 'momentm'"),
        ({"kind": "sgd", "momentum": "much"}, "momentum of optimizer sgd must be a float, got 'much'"),
        ({"kind": "sgd", "momentum": 0.9, "nesterov": 1}, "nesterov of optimizer sgd must be a bool, got 1"),
        ({"kind": "sgd", "momentum": 2}, r"Sgd's momentum must lie in \[0, 1\), got 2"),
    ],
)
def test_a_wrong_optimizer_is_refused_when_settings_are_loaded(form: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        optimizer(form)
    with pytest.raises(ConfigError, match=told):
        _settings(optimizer=form)


def test_the_rate_follows_its_schedule_in_place_of_the_line_to_a_tenth() -> None:
    line = _settings(learning_rate=1e-2, learning_rate_decay_steps=100)
    assert learning_rate(line, env_steps=50) == pytest.approx(5.5e-3)
    assert learning_rate(line, env_steps=200) == pytest.approx(1e-3)
    cosine = _settings(
        learning_rate_decay_steps=100, learning_rate_schedule={"kind": "cosine", "start": 1e-2, "end": 0, "over_steps": 1_000}
    )
    assert learning_rate(cosine, env_steps=500) == pytest.approx(5e-3)


def test_numbers_as_yaml_reads_them_are_numbers() -> None:
    text = """
        optimizer: {kind: adamw, weight_decay: 1e-2}
        learning_rate_schedule: {kind: piecewise, values: [1e-3, 1e-4], boundaries: [1e3]}
    """
    settings = _settings(**yaml.safe_load(text))
    assert optimizer(settings.optimizer) == AdamW(weight_decay=1e-2)
    assert [learning_rate(settings, env_steps=steps) for steps in (0, 1_000)] == [1e-3, 1e-4]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"kind": "cosin", "start": 1, "end": 0, "over_steps": 10}, "a schedule cannot be of kind 'cosin'"),
        (
            {"kind": "linear", "start": 1e-3, "end": -1e-3, "over_steps": 10},
            "must be finite and >= 0, got 0.001 at first and -0.001",
        ),
    ],
)
def test_a_wrong_schedule_is_refused_when_settings_are_loaded(form: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        _settings(learning_rate_schedule=form)


def _rows(algorithm: str) -> dict[str, Any]:
    generator = np.random.default_rng(0)
    seen = generator.uniform(-1, 1, (16, 3)).astype(np.float32)
    common = {"observation": seen, "action": generator.integers(0, 2, 16), "reward": np.ones(16, np.float32)}
    if algorithm == "dqn":
        return {**common, "discount": np.full(16, 0.9, np.float32), "next_observation": seen, "weight": np.ones(16, np.float32)}
    return {**common, **{name: np.ones(16, np.float32) for name in ("log_prob", "value", "advantage", "return")}}


@pytest.mark.parametrize(("algorithm", "held"), [("ppo", "value_torso"), ("dqn", "torso")])
def test_groups_and_optimizer_reach_the_update_of(algorithm: str, held: str) -> None:
    rows = {"ppo": "batch_rows", "dqn": "batch_items"}[algorithm]
    settings = {rows: 16, "optimizer": "sgd", "learning_rate_groups": {f"{held}.*": 0.0}, "mode": "numpy"}
    learning = make_agent(algorithm, settings, **SPACES).learning(seed=0)
    before = learning.tensors(env_steps=0)
    learning.learn(Batch(columns=_rows(algorithm), env_steps=16, version=1, newest_version=1), env_steps=16)
    after = learning.tensors(env_steps=0)
    moved = {
        name for name in before if name.startswith(("torso", "value", "policy", "head")) and (before[name] != after[name]).any()
    }
    assert moved and not any(name.startswith(f"{held}.") for name in moved)
    assert not any("moment" in name for name in learning.state()["update"])  # Adam's vectors are not there


@pytest.mark.parametrize(
    ("algorithm", "setting", "told"),
    [
        ("ppo", {"device": "tpu"}, "device 'tpu' cannot be used: known are cpu and cuda"),
        ("dqn", {"device": "tpu"}, "device 'tpu' cannot be used: known are cpu and cuda"),
        ("ppo", {"mixed_precision": True, "mode": "numpy"}, "mode 'numpy' does not know mixed_precision"),
        ("dqn", {"mixed_precision": True, "mode": "numpy"}, "mode 'numpy' does not know mixed_precision"),
        ("ppo", {"accumulate_parts": 3}, "accumulate must be >= 1 and divide batch_rows 256, got 3"),
    ],
)
def test_device_precision_and_parts_reach_the_update(algorithm: str, setting: dict[str, Any], told: str) -> None:
    pytest.importorskip("torch")
    with pytest.raises(ConfigError, match=told):
        make_agent(algorithm, setting, **SPACES).learning(seed=0)
