"""O57: one bad number must not poison the learner's weights, and must be seen."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import NonFiniteError
from rollstream.graph import ActorCriticPolicy, PpoLoss, Update, build_update
from rollstream.spaces import Leaf

SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.0}


@pytest.fixture
def update() -> Update:
    observation = Leaf(name="observation", kind="box", dtype="<f4", shape=(2,), low=(-1.0,) * 2, high=(1.0,) * 2)
    action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
    return build_update(PpoLoss(ActorCriticPolicy((observation,), (action,))), batch_rows=16, seed=0)


@pytest.mark.parametrize("column", ["observation", "advantage", "return", "log_prob"])
def test_o57_a_nan_in_the_data_skips_its_update_and_training_goes_on(update: Update, column: str) -> None:
    generator = np.random.default_rng(0)
    columns = {
        "observation": generator.standard_normal((64, 2)).astype(np.float32),
        "action": generator.integers(0, 2, 64),
        "log_prob": np.full(64, -0.69, np.float32),
        "advantage": generator.standard_normal(64).astype(np.float32),
        "return": generator.standard_normal(64).astype(np.float32),
    }
    before = update.parameters()
    columns[column][10] = np.nan
    metrics = update.update_many(columns, epochs=2, generator=generator, learning_rate=1e-3, **SETTINGS)
    assert (metrics["updates"], metrics["skipped_updates"]) == (6.0, 2.0)
    assert np.isfinite(list(metrics.values())).all()
    assert np.isfinite(update.parameters()).all()
    assert not np.array_equal(update.parameters(), before)


def test_o57_poisoned_weights_are_refused_when_a_state_is_restored(update: Update) -> None:
    state = update.state()
    state["parameters"][5] = np.inf
    with pytest.raises(NonFiniteError, match="are not finite; weights refused"):
        update.load_state(state)
    assert np.isfinite(update.parameters()).all()
