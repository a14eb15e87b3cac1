"""Updates by XLA: an epoch in one program does what its steps do one by one; the arrays of the state are the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("jax")

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError
from rollstream.graph import Adam, Update, build_update
from rollstream.graph.backends.jax.engine import JaxEngine
from rollstream.graph.declare import declare
from rollstream.graph.report import BuildReport
from rollstream.graph.update_plan import EpochEngine, UpdatePlan, UpdateState

ROWS = 8
RATE = 0.05
Columns = Callable[[int], dict[str, np.ndarray]]


def _update(loss: Any) -> Update:
    return build_update(loss, batch_rows=ROWS, max_grad_norm=1.0, mode="jax", seed=3)


def _epochs(update: Update, columns: dict[str, np.ndarray], epochs: int = 2) -> dict[str, float]:
    return update.update_many(columns, epochs=epochs, generator=np.random.default_rng(1), learning_rate=RATE, scale=0.7)


def _plan(loss: Any, *, rate_scale: np.ndarray | None = None) -> UpdatePlan:
    declared = declare(loss.policy)
    return UpdatePlan(
        loss=loss,
        layout=declared.layout,
        batch_rows=ROWS,
        optimizer=Adam(),
        max_grad_norm=None,
        uses_target=True,
        state_layout=declared.state_layout,
        rate_scale=rate_scale,
    )


def _engine(loss: Any, *, rate_scale: np.ndarray | None = None) -> tuple[JaxEngine, UpdateState]:
    plan = _plan(loss, rate_scale=rate_scale)
    state = UpdateState.start(plan, plan.layout.init(0))
    return JaxEngine(plan, state, clock=SystemClock()), state


def test_an_epoch_in_one_program_equals_its_steps(line_loss: Any, line_columns: Columns) -> None:
    columns = line_columns(3 * ROWS)
    (one, by_steps), (other, by_epoch) = _engine(line_loss), _engine(line_loss)
    assert isinstance(other, EpochEngine)
    minibatches = one.stage(columns)
    other_minibatches = other.stage(columns)
    assert len(minibatches) == 3
    for count in (3, 2, 1):
        for minibatch in minibatches[:count]:
            one.step(minibatch, learning_rate=RATE, scalars={"scale": 0.7})
        other.epoch(other_minibatches[:count], learning_rate=RATE, scalars={"scale": 0.7})
        np.testing.assert_allclose(by_epoch.parameters, by_steps.parameters, atol=1e-6)
        np.testing.assert_allclose(by_epoch.slots, by_steps.slots, atol=1e-6)
        np.testing.assert_allclose(by_epoch.sums, by_steps.sums, rtol=1e-5)
        assert by_epoch.count.tolist() == by_steps.count.tolist()
        assert by_epoch.tally.tolist() == by_steps.tally.tolist()
        np.testing.assert_allclose(other.rows()["error"], one.rows()["error"], atol=1e-6)
    assert by_steps.count.tolist() == [6]


def test_an_update_hands_whole_epochs_to_the_engine(line_loss: Any, line_columns: Columns) -> None:
    class Counting(JaxEngine):
        epochs: ClassVar[list[int]] = []

        def epoch(self, minibatches: Sequence[Any], **settings: Any) -> None:
            self.epochs.append(len(minibatches))
            super().epoch(minibatches, **settings)

    plan = _plan(line_loss)
    state = UpdateState.start(plan, plan.layout.init(3))
    report = BuildReport.of(declare(line_loss), mode="jax")
    update = Update(plan, state, Counting(plan, state, clock=SystemClock()), report)
    _epochs(update, line_columns(3 * ROWS))
    _epochs(update, line_columns(2 * ROWS))
    assert Counting.epochs == [3, 3, 2, 2]
    assert update.updates == 10


def test_nothing_compiles_after_the_first_epoch(line_loss: Any, line_columns: Columns, compilations: list[str]) -> None:
    update = _update(line_loss)
    _epochs(update, line_columns(4 * ROWS))
    made = len(compilations)
    assert made >= 2
    for rows in (4 * ROWS, 3 * ROWS - 1, 1, 2 * ROWS):
        assert _epochs(update, line_columns(rows))["updates"] == 2 * -(-rows // ROWS)
        update.update(line_columns(ROWS), learning_rate=RATE, scale=0.1)
        update.sync_target()
        update.load_state(update.state())
    assert len(compilations) == made
    assert update.recompiles == 0
    _epochs(update, line_columns(5 * ROWS))
    assert update.recompiles == 1


def test_a_bad_minibatch_of_an_epoch_is_skipped_and_the_others_count(line_loss: Any, line_columns: Columns) -> None:
    columns = line_columns(3 * ROWS)
    engine, state = _engine(line_loss)
    minibatches = engine.stage(columns)
    for place in (0, 2):
        engine.step(minibatches[place], learning_rate=RATE, scalars={"scale": 1.0})
    spoiled, spoiled_state = _engine(line_loss)
    columns["y"][ROWS + 3] = np.inf
    spoiled.epoch(spoiled.stage(columns), learning_rate=RATE, scalars={"scale": 1.0})
    np.testing.assert_allclose(spoiled_state.parameters, state.parameters, atol=1e-6)
    np.testing.assert_allclose(spoiled_state.sums, state.sums, rtol=1e-5)
    assert (spoiled_state.count.tolist(), spoiled_state.tally.tolist()) == ([2], [2, 1])


def test_what_changes_the_state_from_outside_is_seen(line_loss: Any, line_columns: Columns) -> None:
    batch = line_columns(ROWS)
    update, fresh = _update(line_loss), _update(line_loss)
    start = fresh.state()
    _epochs(update, line_columns(2 * ROWS))
    update.load_state(start)
    for one in (update, fresh):
        one.observe({"x": batch["x"] + 3})
    first, other = (one.update(batch, learning_rate=RATE, scale=1.0).outputs["error"] for one in (update, fresh))
    np.testing.assert_allclose(first, other, atol=1e-6)
    update.sync_target()
    assert np.abs(update.update(batch, learning_rate=RATE, scale=1.0).outputs["error"] - other).max() > 1e-3


def test_parameters_of_rate_zero_stay(line_loss: Any, line_columns: Columns) -> None:
    engine, state = _engine(line_loss, rate_scale=np.array([0, 1, 0, 1], np.float32))
    before = state.parameters.copy()
    engine.epoch(engine.stage(line_columns(2 * ROWS)), learning_rate=RATE, scalars={"scale": 1.0})
    assert (state.parameters != before).tolist() == [False, True, False, True]


def test_the_report_says_what_was_compiled(line_loss: Any) -> None:
    report = _update(line_loss).report
    assert report.graph is not None
    assert report.graph.nodes > 50
    assert report.graph.trace_s > 0
    assert report.graph.compile_s > 0
    assert ", from the cache" in report.text() or not report.graph.cached


def test_a_loss_that_jax_cannot_trace_is_named(line_loss: Any) -> None:
    class Looking(type(line_loss)):  # type: ignore[misc]
        def loss(self, scope: Any, *, x: Any, y: Any, weight: Any, scale: Any) -> Any:
            if scope.declaration is None and y[0] > 0:
                return None
            return super().loss(scope, x=x, y=y, weight=weight, scale=scale)

    with pytest.raises(ConfigError, match=r"\(root\): Looking.loss: mode 'jax' cannot trace Python that looks at numbers"):
        _update(Looking())
