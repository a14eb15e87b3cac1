"""Updates in NumPy alone move parameters as torch does, and state passes between both."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, Adam, DoubleQLoss, PpoLoss, QPolicy, Update, build_update
from rollstream.graph.backends.numpy_tape import elementwise
from rollstream.graph.backends.numpy_update import NumpyEngine
from rollstream.graph.initializers import Constant
from rollstream.graph.inputs import Arguments, Input, sample
from rollstream.graph.losses import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.optimizers import Moved
from rollstream.graph.scope import Scope, api
from rollstream.graph.update_plan import UpdatePlan, UpdateState
from rollstream.spaces import Leaf

SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
ROWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    loss: Any
    settings: dict[str, float]

    def update(self, mode: Any = "numpy", **settings: Any) -> Update:
        return build_update(self.loss, **{"batch_rows": ROWS, "mode": mode, "seed": 5, **settings})

    def columns(self, rows: int = 3 * ROWS - 7) -> dict[str, np.ndarray]:
        drawn = sample(self.loss.arguments("loss"), rows=rows, generator=np.random.default_rng(0))
        return {name: column for name, column in drawn.items() if column.ndim}

    def many(self, update: Update, columns: dict[str, np.ndarray], *, epochs: int, seed: int = 1) -> dict[str, float]:
        generator = np.random.default_rng(seed)
        return update.update_many(columns, epochs=epochs, generator=generator, learning_rate=1e-3, **self.settings)


@pytest.fixture
def ppo(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> Case:
    policy = ActorCriticPolicy((box(8),), (discrete(4),), hidden=(64, 64), shared_torso=False)
    return Case(loss=PpoLoss(policy), settings=SETTINGS)


@pytest.fixture
def double_q(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> Case:
    return Case(loss=DoubleQLoss(QPolicy((box(8),), (discrete(4),), hidden=(64, 64), dueling=True)), settings={})


@pytest.mark.parametrize("name", ["ppo", "double_q"])
def test_sixteen_updates_are_those_of_torch(name: str, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("torch")
    case: Case = request.getfixturevalue(name)
    ours, torch = (case.update(mode) for mode in ("numpy", "torch"))
    found = [case.many(update, case.columns(4 * ROWS - 7), epochs=4) for update in (ours, torch)]
    assert found[0]["updates"] == 16
    assert found[0] == pytest.approx(found[1], rel=1e-4, abs=1e-6)
    wanted = torch.state()
    for part, array in ours.state().items():
        np.testing.assert_allclose(array, wanted[part], rtol=1e-6, atol=1e-6, err_msg=part)


def test_td_errors_and_the_target_network_are_those_of_torch(double_q: Case) -> None:
    pytest.importorskip("torch")
    ours, torch, batch = double_q.update("numpy"), double_q.update("torch"), double_q.columns(ROWS)
    for round_ in range(3):
        one, other = (update.update(batch, learning_rate=1e-2) for update in (ours, torch))
        np.testing.assert_allclose(one.outputs["td_error"], other.outputs["td_error"], atol=1e-5)
        if round_ == 1:
            ours.sync_target()
            torch.sync_target()


def test_what_is_not_finite_is_skipped_and_counted(ppo: Case) -> None:
    update, columns = ppo.update(), ppo.columns()
    before = update.state()
    bad = {**columns, "advantage": np.full_like(columns["advantage"], np.nan)}
    metrics = ppo.many(update, bad, epochs=2)
    assert metrics == {"updates": 0.0, "skipped_updates": 6.0}
    assert all(np.array_equal(before[name], array) for name, array in update.state().items())
    one_bad = {**columns, "return": columns["return"].copy()}
    one_bad["return"][3] = 1e38
    metrics = ppo.many(update, one_bad, epochs=1)
    assert (metrics["updates"], metrics["skipped_updates"]) == (2.0, 1.0)
    assert np.isfinite(list(metrics.values())).all()
    assert np.isfinite(update.parameters()).all()


def test_state_continues_in_torch_and_comes_back(ppo: Case) -> None:
    pytest.importorskip("torch")
    alone, first, other, last = ppo.update(), ppo.update(), ppo.update("torch", seed=6), ppo.update(seed=7)
    columns = ppo.columns()
    for seed in (1, 2, 3):
        ppo.many(alone, columns, epochs=1, seed=seed)
    ppo.many(first, columns, epochs=1, seed=1)
    other.load_state(first.state())
    ppo.many(other, columns, epochs=1, seed=2)
    last.load_state(other.state())
    ppo.many(last, columns, epochs=1, seed=3)
    assert last.updates == alone.updates == 9
    np.testing.assert_allclose(last.parameters(), alone.parameters(), atol=1e-6)


def test_building_does_not_move_anything(ppo: Case) -> None:
    update = ppo.update()
    np.testing.assert_array_equal(update.parameters(), update.layout.init(5))
    assert update.updates == 0
    assert not update.state()["first_moment"].any()


def test_minibatches_in_larger_buffers_are_read_in_their_place(ppo: Case) -> None:
    update, columns = ppo.update(), ppo.columns(2 * ROWS)
    ppo.many(update, ppo.columns(5 * ROWS), epochs=1)  # buffers for five
    again = ppo.update()
    again.load_state(update.state())
    found = [ppo.many(one, columns, epochs=2) for one in (update, again)]
    assert found[0] == found[1]


def _straight(y: Any) -> Any:
    return y


@dataclass(frozen=True)
class Line:
    """y = w x, where x and y are given; `bend` makes it what it is tested for."""

    bend: Callable[[Any], Any] = _straight

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("error",)

    @property
    def policy(self) -> Line:
        return self

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x"), "y": Input(name="y")}

    @api
    def loss(self, scope: Scope, *, x: Array, y: Array) -> LossResult:
        slope = scope.parameter("slope", (1,), Constant(value=1.0))
        unused = scope.parameter("unused", (2,), Constant(value=3.0))
        error = self.bend(x * slope) - y
        loss = scope.ops.mean(error * error)
        assert unused is not None
        return LossResult(loss=loss, metrics=scope.ops.reshape(scope.ops.stop_gradient(loss), (1,)), rows={"error": error})


@dataclass(frozen=True)
class Descent:
    """Plain gradient descent."""

    slots: ClassVar[tuple[str, ...]] = ()

    def step(
        self, ops: Any, parameters: Array, slots: tuple[Array, ...], gradient: Array, *, count: Array, learning_rate: Array
    ) -> Moved:
        return Moved(parameters=parameters - gradient * learning_rate, slots=())


@dataclass(frozen=True)
class Looking:
    """Descent that keeps the parameters of one and of two steps before."""

    slots: ClassVar[tuple[str, ...]] = ("one", "two")

    def step(
        self, ops: Any, parameters: Array, slots: tuple[Array, ...], gradient: Array, *, count: Array, learning_rate: Array
    ) -> Moved:
        return Moved(parameters=parameters - gradient * learning_rate, slots=(parameters, slots[0]))


def _engine(loss: Any, **settings: Any) -> tuple[NumpyEngine, UpdateState]:
    update = build_update(loss, batch_rows=2, mode="numpy", seed=0)
    plan = UpdatePlan(
        loss=loss,
        layout=update.layout,
        batch_rows=2,
        uses_target=False,
        **{"optimizer": Descent(), "max_grad_norm": None, **settings},
    )
    state = UpdateState.start(plan, update.parameters())
    return NumpyEngine(plan, state), state


def _step(engine: NumpyEngine, x: list[float], y: list[float]) -> None:
    (minibatch,) = engine.stage({"x": np.array(x, np.float32), "y": np.array(y, np.float32)})
    engine.step(minibatch, learning_rate=0.1, scalars={})


def test_a_step_worked_by_hand() -> None:
    """w = 1, x = (1, 2), y = (0, 0): loss (1 + 4) / 2 = 2.5, slope (2 * 1 + 2 * 2 * 2) / 2 = 5."""
    engine, state = _engine(Line())
    _step(engine, [1, 2], [0, 0])
    np.testing.assert_allclose(state.parameters, [0.5, 3.0, 3.0])
    np.testing.assert_allclose(state.sums, [2.5, 2.5, 5.0])
    assert (state.count.tolist(), state.tally.tolist()) == ([1], [1, 0])
    np.testing.assert_allclose(engine.rows()["error"], [1, 2])


def test_long_gradients_are_clipped_and_rates_scaled() -> None:
    engine, state = _engine(Line(), max_grad_norm=0.5, rate_scale=np.array([2.0, 1.0, 1.0], np.float32))
    _step(engine, [1, 2], [0, 0])
    np.testing.assert_allclose(state.parameters[0], 1.0 - 0.1 * 2.0 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(state.sums[-1], 5.0)


def test_an_optimizer_may_hand_on_what_it_was_given() -> None:
    engine, state = _engine(Line(), optimizer=Looking())
    seen = [state.parameters[0]]
    for _ in range(3):
        _step(engine, [1, 2], [0, 0])
        seen.append(state.parameters[0])
    assert state.slots[:, 0].tolist() == [seen[2], seen[1]]
    np.testing.assert_allclose(seen, [1.0, 0.5, 0.25, 0.125])


def test_an_operation_without_a_rule_is_refused_by_name_with_what_to_use() -> None:
    loss = Line(bend=lambda y: elementwise(np.cosh, y))
    with pytest.raises(ConfigError, match="mode 'numpy' has no gradient of cosh; use mode 'torch' or other ops in the loss"):
        build_update(loss, batch_rows=2, mode="numpy", seed=0)


def test_a_loss_without_gradient_moves_nothing() -> None:
    loss = Line(bend=lambda y: y * 0.0 if isinstance(y, np.ndarray) else y.tape.input(y.array))
    update = build_update(loss, batch_rows=2, mode="numpy", optimizer=Adam(), seed=0)
    update.update({"x": np.ones(2, np.float32), "y": np.ones(2, np.float32)}, learning_rate=0.1)
    assert update.parameters().tolist() == [1.0, 3.0, 3.0]


def test_a_learner_in_numpy_never_imports_torch() -> None:
    program = (
        "import sys, numpy as np\n"
        "from rollstream.graph import PpoLoss, ActorCriticPolicy, build_update\n"
        "from rollstream.spaces import Leaf\n"
        "x = Leaf(name='observation', kind='box', dtype='<f4', shape=(4,), low=(-1.,)*4, high=(1.,)*4)\n"
        "a = Leaf(name='action', kind='discrete', dtype='<i8', shape=(), counts=(2,), starts=(0,))\n"
        "build_update(PpoLoss(ActorCriticPolicy((x,), (a,))), batch_rows=8, mode='numpy', seed=0)\n"
        "sys.exit('torch' in sys.modules or 'jax' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
