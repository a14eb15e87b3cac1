"""Every setting is described, and a number's name says what it counts."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from pydantic_settings import BaseSettings

from rollstream.config import Frozen

PACKAGES = (
    "rollstream.config",
    "rollstream.algorithms",
    "rollstream.replay",
    "rollstream_service",
    "rollstream_actor",
    "rollstream_learner",
    "rollstream_replay",
    "rollstream_control",
)
UNITS = re.compile(
    r"(_s|_bytes|_mb|_steps?|_updates?|_items?|_rows|_entries|_episodes|_threads|_restarts|_port|_shards?|_versions|_replicas|_percentage|_seconds)$"
)
UNITLESS = {
    # counts whose name is the unit, ratios, exponents and rates without one
    "actors", "envs_per_actor", "seed", "weight", "keep", "epochs", "n_step", "port", "shard", "updates", "env_steps", "mean_return",
    "discount", "gae_lambda", "clip_ratio", "value_coefficient", "entropy_coefficient", "max_gradient_norm", "learning_rate", "huber_delta",
    "epsilon_start", "epsilon_end", "priority_exponent", "importance_exponent", "samples_per_insert", "exponent", "hidden", "max_lag",
    "epsilon", "epsilon_exponent", "priority_floor", "priority_eta",
    "max_times_sampled", "min_diff", "max_diff", "half_life", "parts", "accumulate_parts", "stack",
    "learning_rate_groups", "distribution_atoms", "distribution_low", "distribution_high", "recurrent_units",
    "replicas", "shards", "rows", "min_replicas", "max_replicas",
    # of SAC, TD3, MARWIL and CQL: shares, entropies in nats, deviations as shares of a range
    "target_share", "target_entropy", "target_entropy_share", "initial_temperature", "conservative_weight", "conservative_samples",
    "imitation_exponent", "imitation_weight_limit", "advantage_scale_share", "target_noise", "target_noise_limit",
    "exploration_noise_start", "exploration_noise_end",
    # processes, messages, and limits of importance ratios
    "learner_ranks", "in_flight", "c_clip", "rho_clip", "worker_clip", "kl_coefficient", "vtrace_lambda",
    "batch_sequences", "replay_slots", "replay_share", "minibatches", "tasks_per_actor", "inner_learning_rate",
    # of ES and ARS, QMIX and self-play
    "deviation", "noise_numbers", "noise_seed", "pairs", "top_pairs", "weight_decay", "hyper_units", "mixing_units",
    "latest_share", "league_size", "snapshot_win_rate",
    # of noisy networks, and minibatches taken from one sample
    "noise_deviation", "updates_per_sample",
    # places in a run of rows, counted from the newest
    "index", "indices", "start", "stop", "step",
}  # fmt: skip
VIEWS = "rollstream_control.api"
"""Answers of the REST API: nobody sets them."""
MIN_DESCRIPTION = 12


def settings_models() -> Iterator[type[BaseModel]]:
    """Every class of settings, specs and messages that a person may write."""
    for package in PACKAGES:
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, package + "."):
            if not info.name.endswith("__main__"):
                importlib.import_module(info.name)
    yield from _below(Frozen)
    yield from _below(BaseSettings)


def _below(model: type[Any]) -> Iterator[type[Any]]:
    for child in model.__subclasses__():
        if child.__module__.startswith("rollstream"):
            yield child
        yield from _below(child)


def is_number(annotation: Any) -> bool:
    return annotation in (int, float) or any(is_number(part) for part in get_args(annotation))


@pytest.fixture(scope="module")
def fields() -> list[tuple[str, str, Any]]:
    return [
        (f"{model.__module__}.{model.__qualname__}", name, field)
        for model in settings_models()
        if model.__module__.startswith(PACKAGES) and not model.__module__.startswith(VIEWS)
        for name, field in model.model_fields.items()
    ]


def test_every_setting_is_described(fields: list[tuple[str, str, Any]]) -> None:
    assert len(fields) > 80
    bare = [f"{model}.{name}" for model, name, field in fields if len(field.description or "") < MIN_DESCRIPTION]
    assert not bare


def test_every_number_has_a_unit(fields: list[tuple[str, str, Any]]) -> None:
    bare = sorted(
        {
            f"{model}.{name}"
            for model, name, field in fields
            if is_number(field.annotation) and not UNITS.search(name) and name not in UNITLESS
        }
    )
    assert not bare
