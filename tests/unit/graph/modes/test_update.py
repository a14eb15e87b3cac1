"""Updates by torch eager."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import ConfigError, NonFiniteError, SchemaMismatch
from rollstream.graph import ActorCriticPolicy, DoubleQLoss, PpoLoss, QPolicy, Update, build_update
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, sample
from rollstream.graph.losses import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
ROWS = 8


@pytest.fixture
def ppo(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> PpoLoss:
    return PpoLoss(ActorCriticPolicy((box(4),), (discrete(2),), hidden=(8,)))


@pytest.fixture
def double_q(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> DoubleQLoss:
    return DoubleQLoss(QPolicy((box(4),), (discrete(2),), hidden=(8,)))


def _columns(loss: PpoLoss | DoubleQLoss, rows: int) -> dict[str, np.ndarray]:
    drawn = sample(loss.arguments("loss"), rows=rows, generator=np.random.default_rng(0))
    return {name: column for name, column in drawn.items() if column.ndim}


def _many(update: Update, columns: dict[str, np.ndarray], *, epochs: int = 1, seed: int = 0) -> dict[str, float]:
    generator = np.random.default_rng(seed)
    return update.update_many(columns, epochs=epochs, generator=generator, learning_rate=1e-2, **SETTINGS)


def test_the_loss_goes_down(ppo: PpoLoss, double_q: DoubleQLoss) -> None:
    update, columns = build_update(ppo, batch_rows=ROWS, seed=0), _columns(ppo, 4 * ROWS)
    losses = [_many(update, columns)["loss"] for _ in range(30)]
    assert losses[-1] < losses[0] - 0.1
    values, items = build_update(double_q, batch_rows=ROWS, seed=0), _columns(double_q, ROWS)
    errors = [values.update(items, learning_rate=1e-2).metrics["td_error_abs"] for _ in range(100)]
    assert errors[-1] < 0.5 * errors[0]


def test_metrics_are_means_over_the_updates(ppo: PpoLoss) -> None:
    columns = _columns(ppo, ROWS)
    twice, once = (build_update(ppo, batch_rows=ROWS, seed=0) for _ in range(2))
    metrics = _many(twice, columns, epochs=2)
    first, second = (once.update(columns, learning_rate=1e-2, **SETTINGS).metrics for _ in range(2))
    assert metrics["updates"] == 2.0
    assert metrics["loss"] == pytest.approx((first["loss"] + second["loss"]) / 2, rel=1e-4)
    assert set(metrics) == {
        "policy_loss",
        "value_loss",
        "entropy",
        "approximate_kl",
        "clipped_fraction",
        "loss",
        "gradient_norm",
        "updates",
        "skipped_updates",
    }


def test_the_number_of_rows_may_vary_from_round_to_round(ppo: PpoLoss) -> None:
    update = build_update(ppo, batch_rows=ROWS, seed=0)
    assert [_many(update, _columns(ppo, rows))["updates"] for rows in (3, ROWS, 100, 9)] == [1, 1, 13, 2]
    assert update.updates == 17


def test_padding_does_not_change_the_update(ppo: PpoLoss) -> None:
    columns = _columns(ppo, 5)
    padded, exact = build_update(ppo, batch_rows=ROWS, seed=0), build_update(ppo, batch_rows=5, seed=0)
    _many(padded, columns)
    _many(exact, columns)
    np.testing.assert_allclose(padded.parameters(), exact.parameters(), atol=1e-6)


def test_td_errors_come_in_the_order_of_the_rows(double_q: DoubleQLoss) -> None:
    update, columns = build_update(double_q, batch_rows=ROWS, seed=0), _columns(double_q, ROWS)
    shifted = {**columns, "reward": columns["reward"] + np.arange(ROWS, dtype=np.float32)}
    plain = update.update(columns, learning_rate=0.0).outputs["td_error"]
    more = update.update(shifted, learning_rate=0.0).outputs["td_error"]
    np.testing.assert_allclose(more - plain, np.arange(ROWS), atol=1e-5)


def test_the_target_network_moves_only_when_synchronized(double_q: DoubleQLoss) -> None:
    update = build_update(double_q, batch_rows=ROWS, seed=0)
    before = update.state()["target"]
    update.update(_columns(double_q, ROWS), learning_rate=1e-2)
    np.testing.assert_array_equal(update.state()["target"], before)
    update.sync_target()
    np.testing.assert_array_equal(update.state()["target"], update.parameters())


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_a_non_finite_loss_or_gradient_changes_nothing_and_is_counted(ppo: PpoLoss, poison: float) -> None:
    update, columns = build_update(ppo, batch_rows=ROWS, seed=0), _columns(ppo, ROWS)
    _many(update, columns)
    before = update.state()
    bad = {**columns, "return": columns["return"].copy()}
    bad["return"][3] = poison
    metrics = _many(update, bad)
    assert metrics == {"updates": 0.0, "skipped_updates": 1.0}
    after = update.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    assert _many(update, columns)["skipped_updates"] == 0.0


def test_a_restored_state_continues_bit_for_bit(ppo: PpoLoss, double_q: DoubleQLoss) -> None:
    for loss, settings in ((ppo, SETTINGS), (double_q, {})):
        columns = _columns(loss, ROWS)
        straight, resumed = build_update(loss, batch_rows=ROWS, seed=0), build_update(loss, batch_rows=ROWS, seed=9)
        straight.update(columns, learning_rate=1e-2, **settings)
        resumed.load_state(straight.state())
        for update in (straight, resumed):
            update.update(columns, learning_rate=1e-2, **settings)
        np.testing.assert_array_equal(straight.parameters(), resumed.parameters())
        assert resumed.updates == 2


def test_a_state_of_another_policy_or_with_nan_is_refused(ppo: PpoLoss, double_q: DoubleQLoss) -> None:
    update, other = build_update(ppo, batch_rows=ROWS, seed=0), build_update(double_q, batch_rows=ROWS, seed=0)
    with pytest.raises(
        SchemaMismatch, match=r"parameters: needs shape \[\d+\], got shape \[\d+\]; .* continue with the settings"
    ):
        update.load_state(other.state())
    with pytest.raises(SchemaMismatch, match=r"update state count: needs shape \[1\], got nothing"):
        update.load_state({name: array for name, array in update.state().items() if name != "count"})
    poisoned = update.state()
    poisoned["parameters"][0] = np.nan
    with pytest.raises(NonFiniteError, match=r"torso.0.weight"):
        update.load_state(poisoned)


def test_gradients_are_clipped_to_the_global_norm(ppo: PpoLoss) -> None:
    columns = _columns(ppo, ROWS)
    free, clipped = (build_update(ppo, batch_rows=ROWS, seed=0, max_grad_norm=norm) for norm in (None, 0.01))
    norm = _many(free, columns)["gradient_norm"]
    assert norm > 0.01
    assert _many(clipped, columns)["gradient_norm"] == pytest.approx(norm)
    moment = clipped.state()["first_moment"]
    assert np.linalg.norm(moment) == pytest.approx(0.1 * 0.01, rel=1e-3)
    assert np.linalg.norm(free.state()["first_moment"]) == pytest.approx(0.1 * norm, rel=1e-3)


def test_float32_columns_may_be_read_only(double_q: DoubleQLoss) -> None:
    columns = _columns(double_q, ROWS)
    for column in columns.values():
        column.flags.writeable = False
    build_update(double_q, batch_rows=ROWS, seed=0).update(columns, learning_rate=1e-3)


def test_arguments_that_cannot_work_are_refused(ppo: PpoLoss) -> None:
    update, columns = build_update(ppo, batch_rows=ROWS, seed=0), _columns(ppo, ROWS)
    with pytest.raises(ConfigError, match=r"this update takes the settings \['clip_ratio', .*\], got \[\]"):
        update.update(columns, learning_rate=1e-3)
    with pytest.raises(ConfigError, match="learning_rate must be finite and >= 0, got nan"):
        update.update(columns, learning_rate=float("nan"), **SETTINGS)
    with pytest.raises(ConfigError, match="batch_rows is 4, but this update was built for 8; build another"):
        update.update_many(columns, epochs=1, batch_rows=4, generator=np.random.default_rng(0), learning_rate=1e-3, **SETTINGS)
    with pytest.raises(ConfigError, match="PpoLoss has no target network to synchronize"):
        update.sync_target()
    with pytest.raises(ConfigError, match="batch_rows must be >= 1, got 0"):
        build_update(ppo, batch_rows=0, seed=0)
    with pytest.raises(ConfigError, match="max_grad_norm must be > 0, got 0; for no clipping use None"):
        build_update(ppo, batch_rows=1, seed=0, max_grad_norm=0)
    with pytest.raises(ConfigError, match="build_update needs a seed for the first parameters, or the parameters"):
        build_update(ppo, batch_rows=1)
    with pytest.raises(ConfigError, match="unknown update mode 'tf'; known: auto, numpy, torch, torch-graph, torch-compile"):
        build_update(ppo, batch_rows=1, seed=0, mode="tf")  # type: ignore[arg-type]


@dataclass(frozen=True)
class _LossWithParameters:
    """Declares a parameter that its policy does not know."""

    policy: QPolicy
    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ()

    def arguments(self, api: str) -> Arguments:
        return {}

    @api
    def loss(self, scope: Scope) -> LossResult:
        temperature: Array = scope.parameter("temperature", (1,), Constant())
        return LossResult(loss=temperature[0], metrics=temperature, rows={})


def test_a_loss_with_parameters_that_its_policy_lacks_is_refused(double_q: DoubleQLoss) -> None:
    with pytest.raises(ConfigError, match="the loss declares parameters that its policy lacks: temperature"):
        build_update(_LossWithParameters(double_q.policy), batch_rows=ROWS, seed=0)
