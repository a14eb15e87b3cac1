"""Updates in torch eager, compiled in two ways, and by hand: same parameters from the same data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, Adam, DoubleQLoss, PpoLoss, QPolicy, Update, build_update
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.torch.gradient import gradient
from rollstream.graph.inputs import sample
from rollstream.graph.memory import Memory
from rollstream.graph.optimizers import Sgd, clip_scale
from rollstream.spaces import Leaf

ROWS = 32
OPTIMIZER = Adam(b1=0.8, b2=0.95, epsilon=1e-4)
MAX_NORM = 0.2
LEARNING_RATE = 1e-2
SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One loss, its updates in both modes, and data."""

    loss: PpoLoss | DoubleQLoss
    eager: Update
    graph: Update
    columns: dict[str, np.ndarray]
    settings: dict[str, float]

    def restart(self) -> None:
        state = build_update(self.loss, batch_rows=ROWS, seed=5).state()
        for update in (self.eager, self.graph):
            update.load_state(state)


def _pair(loss: PpoLoss | DoubleQLoss, settings: dict[str, float]) -> Pair:
    eager, graph = (
        build_update(loss, batch_rows=ROWS, optimizer=OPTIMIZER, max_grad_norm=MAX_NORM, mode=mode, seed=5)
        for mode in ("torch", "torch-graph")
    )
    drawn = sample(loss.arguments("loss"), rows=3 * ROWS - 7, generator=np.random.default_rng(0))
    return Pair(
        loss=loss,
        eager=eager,
        graph=graph,
        columns={name: column for name, column in drawn.items() if column.ndim},
        settings=settings,
    )


@pytest.fixture(scope="module")
def ppo(observation: tuple[Leaf, ...], action: Leaf) -> Iterator[Pair]:
    yield _pair(PpoLoss(ActorCriticPolicy(observation, (action,), hidden=(16, 16))), SETTINGS)


@pytest.fixture(scope="module")
def double_q(observation: tuple[Leaf, ...], action: Leaf) -> Iterator[Pair]:
    yield _pair(DoubleQLoss(QPolicy(observation, (action,), hidden=(16, 16), dueling=True)), {})


@pytest.mark.parametrize("name", ["ppo", "double_q"])
def test_eager_and_graph_agree_over_many_updates(name: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(name)
    pair.restart()
    found = [
        update.update_many(
            pair.columns, epochs=4, generator=np.random.default_rng(1), learning_rate=LEARNING_RATE, **pair.settings
        )
        for update in (pair.eager, pair.graph)
    ]
    assert found[0]["updates"] == found[1]["updates"] == 12
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    for part, array in pair.eager.state().items():
        np.testing.assert_allclose(pair.graph.state()[part], array, atol=1e-5)


@pytest.mark.parametrize("name", ["ppo", "double_q"])
def test_both_agree_with_the_formulas_in_numpy(name: str, request: pytest.FixtureRequest) -> None:
    pair: Pair = request.getfixturevalue(name)
    pair.restart()
    batch = {key: column[:ROWS] for key, column in pair.columns.items()}
    state = pair.eager.state()
    inputs = {**batch, **{key: np.asarray(value, np.float32) for key, value in pair.settings.items()}}
    parameters, slots = state["parameters"], (state["first_moment"], state["second_moment"])
    for count in (1, 2):
        slope = gradient(
            pair.loss,
            api="loss",
            memory=Memory(layout=pair.eager.layout, flat=parameters, target=state.get("target")),
            inputs=inputs,
            cotangents={"loss": np.ones((), np.float32)},
        )
        scale = clip_scale(NumpyOps(), np.linalg.norm(slope), max_norm=MAX_NORM)
        moved = OPTIMIZER.step(NumpyOps(), parameters, slots, slope * scale, count=np.float32(count), learning_rate=LEARNING_RATE)
        parameters, slots = moved.parameters, moved.slots
        for update in (pair.eager, pair.graph):
            update.update(batch, learning_rate=LEARNING_RATE, **pair.settings)
            np.testing.assert_allclose(update.parameters(), parameters, atol=1e-5)
            np.testing.assert_allclose(update.state()["second_moment"], slots[1], atol=1e-6)


def test_td_errors_agree(double_q: Pair) -> None:
    double_q.restart()
    batch = {name: column[:ROWS] for name, column in double_q.columns.items()}
    for _ in range(2):
        one, other = (update.update(batch, learning_rate=LEARNING_RATE) for update in (double_q.eager, double_q.graph))
        np.testing.assert_allclose(one.outputs["td_error"], other.outputs["td_error"], atol=1e-5)
    for update in (double_q.eager, double_q.graph):
        update.sync_target()
    one, other = (update.update(batch, learning_rate=LEARNING_RATE) for update in (double_q.eager, double_q.graph))
    np.testing.assert_allclose(one.outputs["td_error"], other.outputs["td_error"], atol=1e-5)


def test_the_graph_skips_what_is_not_finite_and_counts_it(ppo: Pair) -> None:
    ppo.restart()
    bad = {**ppo.columns, "advantage": ppo.columns["advantage"].copy()}
    bad["advantage"][0] = np.nan
    generator = np.random.default_rng(2)
    before = ppo.graph.state()
    one = {name: column[:1] for name, column in bad.items()}
    metrics = ppo.graph.update_many(one, epochs=1, generator=generator, learning_rate=LEARNING_RATE, **SETTINGS)
    assert metrics == {"updates": 0.0, "skipped_updates": 1.0}
    assert all(np.array_equal(before[name], array) for name, array in ppo.graph.state().items())
    metrics = ppo.graph.update_many(bad, epochs=1, generator=generator, learning_rate=LEARNING_RATE, **SETTINGS)
    assert (metrics["updates"], metrics["skipped_updates"]) == (2.0, 1.0)
    assert np.isfinite(list(metrics.values())).all()


def test_the_report_says_what_was_compiled(ppo: Pair) -> None:
    assert ppo.graph.report.graph is not None
    assert ppo.graph.report.graph.nodes > 50
    assert ppo.eager.report.graph is None
    assert "PpoLoss.loss" in ppo.graph.report.text()


def test_without_a_compiler_the_graph_mode_says_what_to_use_instead(ppo: Pair) -> None:
    from torch._inductor import config

    needs = r"mode 'torch-graph' needs a C\+\+ compiler, and none was found; install g\+\+ or use mode 'torch'"
    with config.patch({"cpp.cxx": ("no-such-compiler",)}), pytest.raises(ConfigError, match=needs):
        build_update(ppo.loss, batch_rows=ROWS, mode="torch-graph", seed=0)


def test_a_compiler_that_does_not_compile_is_named_with_what_to_use_instead(ppo: Pair) -> None:
    from torch._inductor import config

    failed = "mode 'torch-graph' could not be built: .*; use mode 'torch'"
    with config.patch({"cpp.cxx": ("true",)}), pytest.raises(ConfigError, match=failed) as raised:
        build_update(ppo.loss, batch_rows=ROWS + 1, mode="torch-graph", seed=0)
    assert raised.value.__cause__ is not None


def test_nothing_is_compiled_again_after_the_first_update(ppo: Pair, double_q: Pair) -> None:
    compiled = build_update(ppo.loss, batch_rows=ROWS, optimizer=OPTIMIZER, max_grad_norm=MAX_NORM, mode="torch-compile", seed=5)
    ppo.restart()
    for update in (ppo.eager, ppo.graph, compiled):
        for rows in (ROWS, 3 * ROWS - 7, 5):
            columns = {name: column[:rows] for name, column in ppo.columns.items()}
            generator = np.random.default_rng(rows)
            update.update_many(columns, epochs=2, generator=generator, learning_rate=LEARNING_RATE, **ppo.settings)
        assert update.recompiles == 0
    assert double_q.graph.recompiles == 0
    assert (ppo.eager.mode, ppo.graph.mode, compiled.mode) == ("torch", "torch-graph", "torch-compile")
    for part, array in ppo.eager.state().items():
        np.testing.assert_allclose(compiled.state()[part], array, atol=1e-5)


def test_parts_and_rates_by_group_are_part_of_the_graph(ppo: Pair) -> None:
    ones = {**ppo.columns, "weight": np.ones_like(ppo.columns["weight"])}
    found = []
    for mode, parts in (("torch", 1), ("torch", 4), ("torch-graph", 4)):
        update = build_update(
            ppo.loss, batch_rows=ROWS, optimizer=Sgd(momentum=0.5), mode=mode, accumulate=parts, groups={"policy.*": 0.1}, seed=5
        )
        generator = np.random.default_rng(0)  # the last minibatch is padded: a part may have no row that counts
        few = {name: column[: ROWS + 3] for name, column in ones.items()}
        update.update_many(few, epochs=2, generator=generator, learning_rate=0.1, **ppo.settings)
        found.append(update.parameters())
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    np.testing.assert_allclose(found[2], found[0], atol=1e-6)
