"""Gradients that travel: computed in actors, averaged by rows, applied by the learner; what is not finite stays where it arose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.flow.steps import apply_gradients, average_gradients, compute_gradients
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.spaces import Batch


@dataclass
class Found:
    vector: np.ndarray
    rows: int
    metrics: Mapping[str, float]
    is_finite: bool


class Doubling:
    """Gradient = rows' sum times the weights."""

    def gradient(self, columns: Mapping[str, Any], tensors: Mapping[str, Any]) -> Found:
        vector = (columns["x"].sum() * tensors["w"]).astype(np.float32)
        return Found(vector, len(columns["x"]), {"loss": 0.25}, bool(np.isfinite(vector).all()))


class Agent:
    asked = 0

    def gradients(self) -> Doubling:
        self.asked += 1
        return Doubling()


def batch(**columns: Any) -> Batch:
    return Batch(columns=columns, env_steps=6, version=3, newest_version=3, metrics={"seen": 1.0})


def test_an_actor_computes_the_gradient_by_the_weights_that_act() -> None:
    side = ToyActor(agent=Agent(), weights={"w": np.array([1.0, 2.0], np.float32)})
    step = compute_gradients().bind(side)
    assert side.agent.asked == 0
    found = step(batch(x=np.array([1.0, 2.0, 3.0], np.float32)))
    assert found.columns["gradient"].tolist() == [[6.0, 12.0]]
    assert found.columns["gradient_rows"].tolist() == [3.0]
    assert found.env_steps == 6
    assert found.metrics == {"seen": 1.0, "loss": 0.25}
    step(batch(x=np.zeros(3, np.float32)))
    assert side.agent.asked == 1


def test_a_gradient_that_is_not_finite_stays_in_its_actor_and_is_counted_under_its_name() -> None:
    side = ToyActor(actor="actor-3", agent=Agent(), weights={"w": np.array([1.0, 2.0], np.float32)})
    found = compute_gradients().bind(side)(batch(x=np.array([np.nan], np.float32)))
    assert found.columns["gradient"].shape == (0, 2)
    learner = ToyLearner()
    after = apply_gradients().bind(learner)(found)
    assert learner.updated == 0
    assert learner.counters.value("updates_skipped", reason="actor-3") == 1
    assert after.metrics == {"seen": 1.0}
    assert after.env_steps == 6


def test_an_agent_without_gradients_is_named() -> None:
    step = compute_gradients().bind(ToyActor(agent="text"))
    with pytest.raises(ConfigError, match=r"compute_gradients needs an agent with a method gradients\(\), str has none"):
        step(batch(x=np.zeros(1)))


def test_the_mean_counts_each_gradient_as_many_times_as_it_has_rows() -> None:
    gradients = np.array([[1.0, 0.0], [4.0, 8.0]], np.float32)
    found = average_gradients().bind(None)(batch(gradient=gradients, gradient_rows=np.array([3.0, 1.0], np.float32)))
    np.testing.assert_allclose(found.columns["gradient"], [[1.75, 2.0]])  # (3 * 1 + 1 * 4) / 4, (3 * 0 + 1 * 8) / 4
    assert found.columns["gradient_rows"].tolist() == [4.0]


def test_one_gradient_is_its_own_mean() -> None:
    one = batch(gradient=np.ones((1, 2), np.float32), gradient_rows=np.array([3.0], np.float32))
    assert average_gradients().bind(None)(one) is one


def test_the_learner_takes_a_step_with_each_gradient() -> None:
    learner = ToyLearner()
    found = apply_gradients().bind(learner)(batch(gradient=np.ones((2, 2), np.float32)))
    assert found.metrics["loss"] == 1.0
    assert learner.learned[0].columns["gradient"].shape == (2, 2)


@pytest.mark.parametrize(("step", "name"), [(average_gradients, "average_gradients"), (apply_gradients, "apply_gradients")])
def test_rows_are_no_gradients(step: Any, name: str) -> None:
    with pytest.raises(
        SchemaMismatch, match=rf"{name} needs the column 'gradient'; the batch has: x\. Put compute_gradients\(\) before"
    ):
        step().bind(ToyLearner())(batch(x=np.zeros(2)))
