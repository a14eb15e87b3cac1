"""Compiled updates as files: found again, refused when damaged, equal to updates never compiled. Compiles once (half a minute)."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.graph import ActorCriticPolicy, PpoLoss, build_update, declare
from rollstream.graph.backends.torch.artefact import build_artefact, load_artefact
from rollstream.graph.inputs import sample
from rollstream.graph.modes import auto as modes_auto
from rollstream.graph.modes import background
from rollstream.graph.optimizers import Sgd
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import UpdatePlan, UpdateState
from rollstream.spaces import Leaf

pytestmark = pytest.mark.timeout(600)
ROWS = 8
SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
SEEN = Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-1.0,) * 4, high=(1.0,) * 4)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
POLICY = ActorCriticPolicy((SEEN,), (ACTION,), hidden=(8,))
LOSS = PpoLoss(POLICY)
OPTIMIZER = Sgd(momentum=0.5)
DEADLINE_S = 120.0


def _plan(*, rows: int = ROWS) -> UpdatePlan:
    layout = declare(POLICY).layout
    return UpdatePlan(loss=LOSS, layout=layout, batch_rows=rows, optimizer=OPTIMIZER, max_grad_norm=0.5, uses_target=False)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled update of `_plan()`."""
    folder = tmp_path_factory.mktemp("cache") / "made"
    found = build_artefact(_plan(), TorchOptions(), directory=folder)
    assert not found.cached and found.path is not None and found.nodes > 50
    return folder


def _columns() -> dict[str, np.ndarray]:
    drawn = sample(LOSS.arguments("loss"), rows=ROWS, generator=np.random.default_rng(0))
    return {name: column for name, column in drawn.items() if column.ndim}


def test_a_second_run_finds_what_the_first_compiled(cache: Path) -> None:
    found = build_artefact(_plan(), TorchOptions(), directory=cache)
    assert found.cached and [found.path] == list(cache.iterdir())


def test_auto_changes_over_and_nothing_but_the_time_differs(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "NICENESS", 0)
    monkeypatch.setattr(modes_auto, "NUMPY_PARAMETERS_MAX", 0)
    auto = build_update(LOSS, batch_rows=ROWS, optimizer=OPTIMIZER, seed=0, mode="auto", cache=cache)
    plain = build_update(LOSS, batch_rows=ROWS, optimizer=OPTIMIZER, seed=0, mode="torch")
    columns, end_s = _columns(), time.monotonic() + DEADLINE_S
    while auto.report.graph is None and time.monotonic() < end_s:
        for update in (auto, plain):
            update.update(columns, learning_rate=0.0, **SETTINGS)
        time.sleep(0.05)
    assert auto.report.graph is not None and auto.report.graph.cached, auto.report.text()
    for _ in range(80):  # of which some run in each engine
        one, other = (update.update(columns, learning_rate=1e-3, **SETTINGS) for update in (auto, plain))
        assert one.metrics == pytest.approx(other.metrics, abs=1e-5)
    assert "runs in mode" in auto.report.remarks[-1]
    for name, array in plain.state().items():
        np.testing.assert_allclose(auto.state()[name], array, atol=1e-5)


def test_a_damaged_file_is_deleted_and_another_machines_never_looked_at(cache: Path, tmp_path: Path) -> None:
    (whole,) = cache.iterdir()
    damaged, foreign = tmp_path / whole.name, tmp_path / f"{'0' * 24}-{'0' * 16}.pt2"
    damaged.write_bytes(whole.read_bytes()[:-100])
    foreign.write_bytes(b"no zip")
    kept = tmp_path / "kept"
    kept.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        from rollstream.graph.backends.torch import artefact

        patch.setattr(artefact, "_compiled", lambda directory, key, *_: directory / "compiled again")
        found = build_artefact(_plan(), TorchOptions(), directory=tmp_path)
    assert found.path == tmp_path / "compiled again" and not found.cached
    assert not damaged.exists() and foreign.exists()


def test_the_key_changes_with_the_program(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rollstream.graph.backends.torch import artefact

    monkeypatch.setattr(artefact, "_compiled", lambda directory, key, *_: Path(key))
    keys = {
        str(build_artefact(_plan(rows=rows), TorchOptions(accumulate=parts), directory=cache).path)
        for rows, parts in ((4, 1), (4, 2))
    }
    monkeypatch.setattr(artefact, "_cpu", lambda: "another")
    keys.add(str(build_artefact(_plan(), TorchOptions(), directory=cache).path))
    assert len(keys) == 3


def test_a_loaded_update_says_what_it_knows_of_each_row_and_skips_what_is_not_finite(cache: Path) -> None:
    plan = _plan()
    state = UpdateState.start(plan, plan.layout.init(0))
    engine = load_artefact(build_artefact(plan, TorchOptions(), directory=cache), plan, state, TorchOptions())
    columns = _columns()
    columns["advantage"][0] = np.nan
    (minibatch,) = engine.stage(columns)
    engine.step(minibatch, learning_rate=0.1, scalars=SETTINGS)
    assert state.tally.tolist() == [0, 1] and engine.rows() == {}
    np.testing.assert_array_equal(state.parameters, plan.layout.init(0))
