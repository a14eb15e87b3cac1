"""ES and ARS: directions worked out by hand on tiny vectors, and everything that a learner remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.algorithms import make_agent
from rollstream.algorithms.ars.agent import ars_direction
from rollstream.algorithms.es.agent import centered_ranks, es_gradient
from rollstream.algorithms.search import merged_statistics
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph.declare import declare
from rollstream.spaces import Batch, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(1,)),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
NOISE = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]], np.float32)


def agent_of(algorithm: str, **settings: Any) -> Any:
    given = {"hidden": [], "noise_numbers": 1_024, **settings}
    return make_agent(algorithm, given, observation=OBSERVATION, actions=ACTIONS)


def batch(places: list[int], returns: list[list[float]], **columns: Any) -> Batch:
    return Batch(
        columns={"noise_place": np.array(places), "returns": np.array(returns, np.float32), **columns},
        env_steps=4,
        version=1,
        newest_version=1,
    )


def test_ranks_are_centered_and_ties_share_theirs() -> None:
    found = centered_ranks(np.array([[30.0, 10.0], [20.0, 1e9]], np.float32))
    np.testing.assert_allclose(found, [[1 / 6, -0.5], [-1 / 6, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(centered_ranks(np.array([5.0, 5.0, 9.0])), [-0.25, -0.25, 0.5])
    assert centered_ranks(np.array([7.0])).tolist() == [0.0]


def test_the_gradient_of_es_by_hand() -> None:
    returns = np.array([[30.0, 10.0], [20.0, 40.0]], np.float32)  # ranks 2 0 1 3 -> 1/6 -1/2 -1/6 1/2
    found = es_gradient(NOISE[:2], returns, deviation=0.5)
    weights = [(1 / 6 + 1 / 2) / (4 * 0.5), (-1 / 6 - 1 / 2) / (4 * 0.5)]  # (u+ - u-) / (2 M deviation)
    np.testing.assert_allclose(found, [weights[0] * 1.0, weights[1] * 2.0], rtol=1e-6)


def test_the_direction_of_ars_by_hand() -> None:
    returns = np.array([[1.0, 3.0], [2.0, 2.0], [5.0, 1.0]], np.float32)  # the better sides: 3, 2, 5: directions 2 and 0
    deviation = np.std([5.0, 1.0, 1.0, 3.0])
    expected = (4.0 * NOISE[2] - 2.0 * NOISE[0]) / (2 * deviation)
    np.testing.assert_allclose(ars_direction(NOISE, returns, top=2), expected, rtol=1e-6)


def test_equal_returns_move_nothing() -> None:
    same = np.full((3, 2), 7.0, np.float32)
    assert not es_gradient(NOISE, same, deviation=0.1).any()
    assert not ars_direction(NOISE, same, top=3).any()


def test_a_step_of_ars_moves_the_weights_along_the_noise_of_the_table() -> None:
    agent = agent_of("ars", pairs=1, top_pairs=1, learning_rate=0.5, normalize_observations=False)
    learning = agent.learning(seed=1)
    layout = declare(agent.policy).layout
    before = layout.join(learning.tensors(env_steps=0))
    learned = learning.learn(batch([11], [[3.0, 1.0]]), env_steps=0)
    moved = layout.join(learning.tensors(env_steps=0)) - before
    np.testing.assert_allclose(moved, 0.5 * 2.0 / 1.0 * agent.noise.at(11, size=layout.size), rtol=1e-4)  # deviation of 3, 1 is 1
    assert learned.updates == 1
    assert learned.metrics["perturbed_return"] == 2.0


def test_weight_decay_of_es_pulls_to_zero() -> None:
    settings = {"optimizer": {"kind": "sgd"}, "learning_rate": 0.5, "weight_decay": 0.1}
    agent = agent_of("es", **settings)
    learning = agent.learning(seed=1)
    layout = declare(agent.policy).layout
    before = layout.join(learning.tensors(env_steps=0))
    learning.learn(batch([11, 30], [[2.0, 2.0], [2.0, 2.0]]), env_steps=0)
    np.testing.assert_allclose(layout.join(learning.tensors(env_steps=0)), before * (1 - 0.5 * 0.1), rtol=1e-5)


@pytest.mark.parametrize("algorithm", ["es", "ars"])
def test_a_learner_goes_on_from_its_state_bit_for_bit(algorithm: str) -> None:
    rounds = [batch([3, 50], [[1.0, 4.0], [2.0, 0.0]]), batch([9, 77], [[5.0, 4.0], [2.0, 8.0]])]
    one = agent_of(algorithm, normalize_observations=False, optimizer={"kind": "adam"}).learning(seed=1)
    one.learn(rounds[0], env_steps=0)
    other = agent_of(algorithm, normalize_observations=False, optimizer={"kind": "adam"}).learning(seed=2)
    other.restore(one.state())
    for learning in (one, other):
        learning.learn(rounds[1], env_steps=10)
    for name, tensor in one.tensors(env_steps=0).items():
        assert np.array_equal(tensor, other.tensors(env_steps=0)[name])


def test_a_step_that_would_not_be_finite_changes_nothing_and_is_counted() -> None:
    agent = agent_of("es", learning_rate=1e38, deviation=1e-20, optimizer={"kind": "sgd"})
    learning = agent.learning(seed=1)
    before = learning.tensors(env_steps=0)
    learned = learning.learn(batch([3], [[2.0, 1.0]]), env_steps=0)
    assert learned.updates == 0
    assert learned.metrics["skipped_updates"] == 1.0
    assert all(np.array_equal(before[name], tensor) for name, tensor in learning.tensors(env_steps=0).items())


def test_statistics_of_all_actors_become_those_of_one_that_saw_everything() -> None:
    layout = declare(agent_of("ars").policy).state_layout

    def state(values: list[float]) -> np.ndarray:
        flat = layout.init(0)
        views = layout.split(flat)
        for name, value in (("count", len(values)), ("mean", np.mean(values)), ("variance", np.var(values))):
            views[f"preprocessing.observation.0.{name}"][...] = value
        return flat

    merged = merged_statistics(layout, [layout.init(0), state([1.0, 2.0]), state([10.0]), state([4.0, 5.0, 6.0])])
    np.testing.assert_allclose(merged, state([1.0, 2.0, 10.0, 4.0, 5.0, 6.0]), rtol=1e-6, atol=1e-6)
    assert np.array_equal(merged_statistics(layout, [layout.init(0)]), layout.init(0))


def test_normalizing_statistics_are_published_with_the_weights() -> None:
    agent = agent_of("ars")
    layout = declare(agent.policy).state_layout
    seen = layout.init(0)
    views = layout.split(seen)
    views["preprocessing.observation.0.count"][...] = 4
    views["preprocessing.observation.0.mean"][...] = 3
    learning = agent.learning(seed=1)
    learning.learn(batch([3], [[1.0, 0.0]], seen=seen[None]), env_steps=0)
    assert learning.tensors(env_steps=0)["preprocessing.observation.0.mean"].tolist() == [3.0]


def test_what_search_cannot_do_is_said() -> None:
    agent = agent_of("es")
    learning = agent.learning(seed=1)
    with pytest.raises(ConfigError, match="es has no loss: it moves weights by the returns of perturbed ones"):
        _ = agent.loss
    with pytest.raises(ConfigError, match="es learns from episodes of perturbed weights, not from replay tables"):
        learning.columns(None, env_steps=0)
    with pytest.raises(ConfigError, match="es has no target network to synchronize"):
        learning.sync_target()
    with pytest.raises(SchemaMismatch, match=r"es learns from the column 'noise_place', the batch has: none; put perturbations"):
        learning.learn(Batch(columns={}, env_steps=0, version=1, newest_version=1), env_steps=0)


def test_the_best_are_some_of_all() -> None:
    with pytest.raises(ConfigError, match=r"top_pairs \(8\) must be <= pairs \(4\): they are the best of them"):
        agent_of("ars", pairs=4)
