"""A gradient that is computed here and applied there moves the parameters exactly as a whole update does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import ConfigError, NonFiniteError, SchemaMismatch
from rollstream.graph import ActorCriticPolicy, Update, build_update
from rollstream.graph.losses import PolicyGradientLoss
from rollstream.graph.optimizers import Adam, Sgd
from rollstream.spaces import Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(3,), low=(-1.0,) * 3, high=(1.0,) * 3),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
SETTINGS = {"value_coefficient": 0.5, "entropy_coefficient": 0.01}
ROWS = 6


def columns(rows: int = ROWS, *, seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    return {
        "observation": generator.standard_normal((rows, 3)).astype(np.float32),
        "action": generator.integers(0, 2, rows),
        "advantage": generator.standard_normal(rows).astype(np.float32),
        "return": generator.standard_normal(rows).astype(np.float32),
    }


def built(mode: Any, *, optimizer: Any = None, max_grad_norm: float | None = 0.1, rows: int = ROWS) -> Update:
    loss = PolicyGradientLoss(ActorCriticPolicy(OBSERVATION, ACTIONS, hidden=(4,)))
    return build_update(loss, batch_rows=rows, optimizer=optimizer or Adam(), max_grad_norm=max_grad_norm, mode=mode, seed=1)


@pytest.mark.parametrize("mode", ["numpy", "torch"])
@pytest.mark.parametrize("max_grad_norm", [None, 0.1])
def test_gradient_and_apply_equal_an_update(mode: str, max_grad_norm: float | None) -> None:
    whole, computing, applying = (built(mode, max_grad_norm=max_grad_norm) for _ in range(3))
    for seed in range(3):
        expected = whole.update(columns(seed=seed), learning_rate=0.01, **SETTINGS).metrics
        gradient = computing.gradient(columns(seed=seed), **SETTINGS)
        told = applying.apply(gradient.vector, learning_rate=0.01)
        computing.load_parameters(applying.parameters())
        np.testing.assert_array_equal(applying.parameters(), whole.parameters())
        for name in ("policy_loss", "value_loss", "entropy", "loss", "gradient_norm"):
            assert gradient.metrics[name] == pytest.approx(expected[name], rel=1e-6)
        assert told == {
            "gradient_norm": pytest.approx(expected["gradient_norm"], rel=1e-6),
            "updates": 1.0,
            "skipped_updates": 0.0,
        }
    assert applying.updates == 3
    assert computing.updates == 0  # only gradients: no moments moved


def test_numpy_and_torch_compute_the_same_gradient() -> None:
    found = [built(mode).gradient(columns(), **SETTINGS) for mode in ("numpy", "torch")]
    np.testing.assert_allclose(found[0].vector, found[1].vector, atol=1e-6)


@pytest.mark.parametrize("mode", ["numpy", "torch"])
def test_fewer_rows_than_the_update_was_built_for_give_the_gradient_of_those_rows(mode: str) -> None:
    few = columns(4)
    exact, padded = built(mode, rows=4).gradient(few, **SETTINGS), built(mode, rows=ROWS).gradient(few, **SETTINGS)
    np.testing.assert_allclose(padded.vector, exact.vector, atol=1e-6)
    assert padded.rows == 4
    with pytest.raises(ConfigError, match="gradient takes 1 to 6 rows, as many as it was built for, got 7"):
        built(mode).gradient(columns(7), **SETTINGS)


@pytest.mark.parametrize("mode", ["numpy", "torch"])
def test_a_step_of_gradient_descent_by_hand(mode: str) -> None:
    update = built(mode, optimizer=Sgd(), max_grad_norm=1.0)
    before = update.parameters()
    gradient = np.zeros(update.layout.size, np.float32)
    gradient[:2] = (3.0, 4.0)  # norm 5, clipped to 1
    assert update.apply(gradient, learning_rate=0.5)["gradient_norm"] == pytest.approx(5.0)
    moved = before - update.parameters()
    np.testing.assert_allclose(moved[:2], (0.3, 0.4), rtol=1e-5)
    assert not moved[2:].any()


@pytest.mark.parametrize("mode", ["numpy", "torch"])
def test_a_gradient_that_is_not_finite_changes_nothing(mode: str) -> None:
    update = built(mode)
    before = update.state()
    gradient = np.full(update.layout.size, np.nan, np.float32)
    assert update.apply(gradient, learning_rate=0.5) == {"updates": 0.0, "skipped_updates": 1.0}
    after = update.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    broken = columns()
    broken["advantage"][2] = np.inf
    found = update.gradient(broken, **SETTINGS)
    assert not found.is_finite
    assert update.gradient(columns(), **SETTINGS).is_finite


def test_a_gradient_of_another_policy_is_refused() -> None:
    with pytest.raises(SchemaMismatch, match=r"a gradient of shape \[3\] does not fit a policy of"):
        built("numpy").apply(np.zeros(3, np.float32), learning_rate=0.1)


def test_parameters_that_are_not_finite_are_refused() -> None:
    update = built("numpy")
    with pytest.raises(NonFiniteError, match="are not finite; weights refused"):
        update.load_parameters(np.full(update.layout.size, np.nan, np.float32))


def test_a_mode_that_cannot_do_one_without_the_other_says_so() -> None:
    update = built("auto")
    with pytest.raises(ConfigError, match="computes and applies gradients in one program; .* mode='numpy' or mode='torch'"):
        update.gradient(columns(), **SETTINGS)


def test_without_a_weight_rows_cannot_be_padded() -> None:
    from rollstream.graph.inputs import flat_inputs
    from rollstream.graph.minibatches import Minibatches

    loss = PolicyGradientLoss(ActorCriticPolicy(OBSERVATION, ACTIONS, hidden=(4,)))
    inputs = [item for item in flat_inputs(loss.arguments("loss")) if item.name != "weight"]
    batches = Minibatches(inputs, batch_rows=4)
    batches.reserve(4)
    with pytest.raises(ConfigError, match="gradient got 2 rows, was built for 4, and the loss has no weight to pad with"):
        batches.pad(columns(2), where="gradient")
