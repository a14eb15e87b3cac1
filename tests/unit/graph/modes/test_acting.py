"""Acting with weights."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from rollstream.errors import ConfigError, NonFiniteError, SchemaMismatch
from rollstream.graph import Acting, ActorCriticPolicy, QPolicy, build_acting
from rollstream.graph.executable import NumpyExecutable
from rollstream.graph.initializers import Constant, Orthogonal
from rollstream.graph.inputs import Input
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf


@pytest.fixture
def acting(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> Acting:
    acting = build_acting(ActorCriticPolicy((box(4),), (discrete(2),), hidden=(8,)), batch=3)
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
    greedy = build_acting(QPolicy((box(4),), (discrete(2),)), batch=3)
    with pytest.raises(ConfigError, match=r"act takes the settings \['epsilon'\], got \[\]"):
        greedy.act(_observation(generator), generator)


def test_a_mode_or_batch_that_does_not_exist_is_refused(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    policy = QPolicy((box(4),), (discrete(2),))
    with pytest.raises(ConfigError, match="unknown acting mode 'onyx'; known: auto, numpy, torch"):
        build_acting(policy, batch=1, mode="onyx")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="batch must be >= 1, got 0"):
        build_acting(policy, batch=0)


def test_noise_may_be_given(acting: Acting, generator: np.random.Generator) -> None:
    observation = _observation(generator)
    noise = np.random.default_rng(5).random(3, dtype=np.float32)
    drawn = acting.act(observation, np.random.default_rng(5))
    given = acting.act(observation, generator, noise={"noise.action": noise})
    for name, column in drawn.items():
        np.testing.assert_array_equal(given[name], column)


def test_noise_that_the_policy_does_not_take_is_refused(acting: Acting, generator: np.random.Generator) -> None:
    with pytest.raises(SchemaMismatch, match=r"act takes the noise \['noise.action'\], got \['dice'\]"):
        acting.act(_observation(generator), generator, noise={"dice": np.zeros(3, np.float32)})


@dataclass(frozen=True)
class _Looks:
    """A policy that convolves an image, and values it."""

    apis = ("act", "values")

    def arguments(self, api: str) -> dict[str, Input]:
        return {"image": Input(name="image", shape=(1, 6, 6))}

    @api
    def act(self, scope: Scope, *, image: Array) -> dict[str, Array]:
        return self.values(scope, image=image)

    @api
    def values(self, scope: Scope, *, image: Array) -> dict[str, Array]:
        ops = scope.ops
        weight = scope.parameter("weight", (2, 1, 3, 3), Orthogonal())
        seen = ops.relu(ops.conv(image, weight, scope.parameter("bias", (2,), Constant()), stride=1))
        return {"value": ops.mean(ops.reshape(seen, (seen.shape[0], 32)), axis=-1)}


def test_auto_takes_numpy_for_a_policy_without_convolutions(acting: Acting) -> None:
    assert isinstance(acting._act, NumpyExecutable)


def test_auto_takes_onnx_for_a_policy_with_convolutions_when_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    from rollstream.graph.backends.onnx.executable import PackedOnnxExecutable

    assert isinstance(build_acting(_Looks(), batch=1)._act, PackedOnnxExecutable)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert isinstance(build_acting(_Looks(), batch=1)._act, NumpyExecutable)


def test_new_weights_reach_what_a_mode_has_packed(generator: np.random.Generator) -> None:
    pytest.importorskip("onnxruntime")
    packed, plain = (build_acting(_Looks(), batch=2, mode=mode) for mode in ("onnx", "numpy"))
    image = {"image": generator.standard_normal((2, 1, 6, 6)).astype(np.float32)}
    seen = []
    for seed in (0, 1, 2):
        for acting in (packed, plain):
            acting.load(acting.layout.init(seed))
        for _ in range(100):  # as parameters are inputs, and as they are packed
            found = packed.act(image, generator)["value"]
        np.testing.assert_allclose(found, plain.act(image, generator)["value"], rtol=1e-5)
        np.testing.assert_allclose(packed.values(image), found, rtol=1e-5)
        seen.append(found)
    assert not np.allclose(seen[0], seen[1])
