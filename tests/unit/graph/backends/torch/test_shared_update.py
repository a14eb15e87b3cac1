"""An update that a learner shares with processes of its own: equal to an update alone, equal weights on all, the dead are named."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.algorithms.ppo.agent import PpoAgent
from rollstream.algorithms.ppo.config import PpoConfig
from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.graph import ActorCriticPolicy, PpoLoss, QPolicy, build_update
from rollstream.graph.backends.torch.shared_update import SharedUpdate
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.losses import DoubleQLoss
from rollstream.graph.optimizers import Sgd
from rollstream.spaces import Batch, Leaf

pytestmark = pytest.mark.timeout(300)
SEEN = (Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-1.0,) * 4, high=(1.0,) * 4),)
ACTIONS = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
SETTINGS: dict[str, Any] = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
COMMON: dict[str, Any] = {"optimizer": Sgd(), "seed": 3, "mode": "torch", "max_grad_norm": None}


def drawn(loss: Any, rows: int) -> dict[str, Any]:
    inputs = loss.arguments("loss")
    found = sample(inputs, rows=rows, generator=np.random.default_rng(1))
    columns = {item.name: found[item.name] for item in flat_inputs(inputs) if item.role == "column"}
    return {**columns, "weight": np.ones(rows, np.float32)}


def test_two_ranks_update_as_one_and_give_outputs_in_the_order_of_the_rows() -> None:
    loss = DoubleQLoss(QPolicy(SEEN, ACTIONS, hidden=(16,)))
    rows = drawn(loss, 32)
    alone = build_update(loss, batch_rows=32, **COMMON)
    shared = SharedUpdate(build_update, loss, ranks=2, batch_rows=32, **COMMON)
    for _ in range(3):
        expected = alone.update(rows, learning_rate=0.1)
        found = shared.update(rows, learning_rate=0.1)
        np.testing.assert_allclose(found.outputs["td_error"], expected.outputs["td_error"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(shared.parameters(), alone.parameters(), rtol=1e-4, atol=1e-6)
    shared.require_equal()
    shared.sync_target()
    alone.sync_target()
    np.testing.assert_allclose(shared.state()["target"], alone.state()["target"], rtol=1e-4, atol=1e-6)
    with pytest.raises(ConfigError, match="an update shared by 2 learner_ranks has no gradient of its own; use learner_ranks=1"):
        shared.gradient(rows)
    shared.end()


def test_an_odd_number_of_rows_is_shared_out_with_weight_0_and_a_state_goes_to_all_ranks() -> None:
    loss = PpoLoss(ActorCriticPolicy(SEEN, ACTIONS, hidden=(16,)))
    rows = drawn(loss, 31)
    shared = SharedUpdate(build_update, loss, ranks=2, batch_rows=32, **COMMON)
    alone = build_update(loss, batch_rows=32, **COMMON)
    generator = np.random.default_rng(0)
    shared.update_many(rows, epochs=1, generator=generator, learning_rate=0.1, **SETTINGS)
    alone.update_many(rows, epochs=1, generator=generator, learning_rate=0.1, **SETTINGS)
    np.testing.assert_allclose(shared.parameters(), alone.parameters(), rtol=1e-4, atol=1e-6)
    shared.load_state(build_update(loss, batch_rows=32, **{**COMMON, "seed": 4}).state())
    shared.update_many(rows, epochs=2, generator=generator, learning_rate=0.1, **SETTINGS)
    shared.require_equal()
    shared.end()


def test_rows_that_cannot_be_shared_out_are_refused() -> None:
    loss = PpoLoss(ActorCriticPolicy(SEEN, ACTIONS, hidden=(16,)))
    with pytest.raises(ConfigError, match="a minibatch of 31 rows cannot be shared by 2 learner_ranks; use a multiple of 2 rows"):
        SharedUpdate(build_update, loss, ranks=2, batch_rows=31, **COMMON)


def test_a_rank_that_was_killed_is_named() -> None:
    import multiprocessing

    loss = PpoLoss(ActorCriticPolicy(SEEN, ACTIONS, hidden=(16,)))
    before = set(multiprocessing.active_children())
    shared = SharedUpdate(build_update, loss, ranks=2, batch_rows=32, deadline_s=20.0, **COMMON)
    (child,) = set(multiprocessing.active_children()) - before
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    with pytest.raises(DeadlineExceeded, match="rank 1 of 2 of the learner has ended; see its error above"):
        shared.update_many(drawn(loss, 32), epochs=1, generator=np.random.default_rng(0), learning_rate=0.1, **SETTINGS)
    shared.end()


def test_ppo_takes_its_ranks_from_a_setting() -> None:
    config = PpoConfig(learner_ranks=2, batch_rows=32, epochs=2, hidden=(16,), normalize_observations=True)
    agent = PpoAgent(config, observation=SEEN, actions=ACTIONS)
    learning: Any = agent.learning(seed=0)
    columns = drawn(agent.loss, 64)
    batch = Batch(columns=columns, env_steps=64, version=1, newest_version=1)
    before = learning.update.parameters()
    assert learning.learn(batch, env_steps=64).updates == 4
    assert not np.array_equal(learning.update.parameters(), before)
    learning.update.require_equal()
    learning.restore(learning.state())
    learning.update.require_equal()
    learning.update.end()
