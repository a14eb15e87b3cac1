"""Acting with weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.errors import ConfigError, NonFiniteError, SchemaMismatch
from rollstream.graph import Acting, CategoricalPolicy, QPolicy, build_acting
from rollstream.spaces import Leaf


@pytest.fixture
def acting(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> Acting:
    acting = build_acting(CategoricalPolicy((box(4),), discrete(2), hidden=(8,)), batch=3)
    acting.load(acting.layout.init(0))
    return acting


def _observation(generator: np.random.Generator, rows: int = 3) -> dict[str, np.ndarray]:
    return {"observation": generator.standard_normal((rows, 4)).astype(np.float32)}


def test_new_weights_act_at_once(acting: Acting, generator: np.random.Generator) -> None:
    observation = _observation(generator)
    before = acting.values(observation)
    acting.load(acting.layout.init(1))
    assert not np.allclose(acting.values(observation), before)
    acting.load(acting.layout.init(0))
    np.testing.assert_array_equal(acting.values(observation), before)


def test_columns_are_the_callers_to_keep(acting: Acting, generator: np.random.Generator) -> None:
    first = acting.act(_observation(generator), generator)
    kept = {name: column.copy() for name, column in first.items()}
    acting.act(_observation(generator), generator)
    for name, column in first.items():
        np.testing.assert_array_equal(column, kept[name])


def test_the_same_generator_draws_the_same_actions(acting: Acting, generator: np.random.Generator) -> None:
    observation = _observation(generator)
    one = [acting.act(observation, np.random.default_rng(5))["action"].tolist() for _ in range(2)]
    assert one[0] == one[1]


@pytest.mark.parametrize("rows", [0, 1, 2, 5, 2500])
def test_values_and_greedy_take_any_number_of_rows(acting: Acting, generator: np.random.Generator, rows: int) -> None:
    observation = _observation(generator, rows)
    values = acting.values(observation)
    assert values.shape == (rows,)
    assert acting.greedy(observation)["action"].shape == (rows,)
    for row in range(0, rows, 700):
        alone = acting.values({"observation": observation["observation"][row : row + 1]})
        np.testing.assert_allclose(values[row], alone[0], rtol=1e-5)


def test_float64_observations_are_converted(acting: Acting, generator: np.random.Generator) -> None:
    observation = _observation(generator)
    wide = {"observation": observation["observation"].astype(np.float64)}
    np.testing.assert_array_equal(
        acting.act(observation, np.random.default_rng(1))["value"], acting.act(wide, np.random.default_rng(1))["value"]
    )


def test_non_finite_weights_are_refused_and_the_old_ones_stay(acting: Acting, generator: np.random.Generator) -> None:
    observation = _observation(generator)
    before = acting.values(observation)
    poisoned = acting.layout.init(1)
    poisoned[0] = np.nan
    with pytest.raises(NonFiniteError, match=r"parameter torso.0.weight are not finite; weights refused"):
        acting.load(poisoned)
    np.testing.assert_array_equal(acting.values(observation), before)


def test_an_observation_that_does_not_fit_is_refused(acting: Acting, generator: np.random.Generator) -> None:
    with pytest.raises(SchemaMismatch, match=r"act: column observation has shape \[2, 4\], built for \[3, 4\]"):
        acting.act(_observation(generator, 2), generator)
    with pytest.raises(SchemaMismatch, match="act: column observation is missing; the observation has camera"):
        acting.act({"camera": np.zeros((3, 4))}, generator)
    with pytest.raises(SchemaMismatch, match="values needs columns observation with equally many rows, got {}"):
        acting.values({"camera": np.zeros((3, 4))})


def test_settings_that_the_policy_does_not_take_are_refused(
    acting: Acting, box: Callable[..., Leaf], discrete: Callable[..., Leaf], generator: np.random.Generator
) -> None:
    with pytest.raises(ConfigError, match=r"act takes the settings \[\], got \['epsilon'\]"):
        acting.act(_observation(generator), generator, epsilon=0.1)
    greedy = build_acting(QPolicy((box(4),), discrete(2)), batch=3)
    with pytest.raises(ConfigError, match=r"act takes the settings \['epsilon'\], got \[\]"):
        greedy.act(_observation(generator), generator)


def test_a_mode_or_batch_that_does_not_exist_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = QPolicy((box(4),), discrete(2))
    with pytest.raises(ConfigError, match="unknown acting mode 'onyx'; known: auto, numpy, torch, onnx"):
        build_acting(policy, batch=1, mode="onyx")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="batch must be >= 1, got 0"):
        build_acting(policy, batch=0)
