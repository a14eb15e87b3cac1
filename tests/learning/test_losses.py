"""Each loss learns what it is made for, on tasks so small that the right answer is known; seconds in all, without torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.graph import Adam, Memory, build, build_acting, build_update
from rollstream.graph.losses import (
    BehaviorCloningLoss,
    CategoricalQLoss,
    DoubleQLoss,
    Loss,
    MarwilLoss,
    PolicyGradientLoss,
    QuantileQLoss,
    SoftActorCriticLoss,
    TwinDelayedLoss,
    VtraceLoss,
)
from rollstream.graph.modes import Acting, Update
from rollstream.graph.policies import ActorCriticPolicy, DeterministicActorCritic, QPolicy, SoftActorCritic
from rollstream.spaces import Leaf

ROWS = 64
PLACE = (Leaf(name="observation", kind="box", dtype="<f4", shape=(1,), low=(-1.0,), high=(1.0,)),)
FORCE = (Leaf(name="action", kind="box", dtype="<f4", shape=(1,), low=(-2.0,), high=(2.0,)),)
CHOICE = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,)),)
PLACES = np.linspace(-0.95, 0.95, 20, dtype=np.float32)[:, None]
STEPS, LENGTH, DISCOUNT = 8, 4, 0.9
CORRIDOR = (Leaf(name="observation", kind="box", dtype="<f4", shape=(LENGTH,), low=(0.0,) * LENGTH, high=(1.0,) * LENGTH),)
TURN = (Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,)),)
PAYS = np.array([1, -1, 0, 1])


def _update(loss: Loss) -> Update:
    return build_update(loss, batch_rows=ROWS, optimizer=Adam(), max_grad_norm=10.0, mode="numpy", seed=0)


def _acting(loss: Loss, update: Update) -> Acting:
    acting = build_acting(loss.policy, batch=ROWS)
    acting.load(update.parameters())
    return acting


def _right_choice(place: np.ndarray) -> np.ndarray:
    """-1 on the left, 0 in the middle, 1 on the right."""
    return np.asarray(np.sign(place[:, 0]) * (np.abs(place[:, 0]) > 0.33)).astype(np.int64)


@pytest.mark.parametrize("kind", ["sac", "td3"])
def test_actors_find_the_force_of_highest_value_from_random_rows(kind: str) -> None:
    """The reward is -(force - place)², at once."""
    if kind == "sac":
        loss: Loss = SoftActorCriticLoss(
            SoftActorCritic(PLACE, FORCE, hidden=(32, 32), initial_temperature=0.1), target_entropy=-1.5
        )
    else:
        loss = TwinDelayedLoss(DeterministicActorCritic(PLACE, FORCE, hidden=(32, 32)))
    update, generator = _update(loss), np.random.default_rng(0)
    for number in range(1_500):
        place, force = generator.uniform(-1, 1, (ROWS, 1)), generator.uniform(-2, 2, (ROWS, 1))
        rows = {
            "observation": place,
            "next_observation": place,
            "action": force,
            "reward": -np.square(force - place)[:, 0],
            "discount": np.zeros(ROWS),
            "noise.action": generator.standard_normal((ROWS, 1)),
            "next_noise.action": generator.standard_normal((ROWS, 1)),
        }
        batch = {name: column.astype(np.float32) for name, column in rows.items()}
        scalars = {} if kind == "sac" else {"actor_weight": float(number % 2)}
        metrics = update.update(batch, learning_rate=2e-3, **scalars).metrics
        update.sync_target(share=0.01)
    force = _acting(loss, update).greedy({"observation": PLACES})["action"]
    assert np.abs(force - PLACES).max() < 0.25
    if kind == "sac":
        assert metrics["entropy"] == pytest.approx(-1.5, abs=0.4)


@pytest.mark.parametrize("kind", ["double-q", "c51", "quantile"])
def test_action_values_are_those_of_the_best_policy(kind: str) -> None:
    """Each of 4 places has one choice that pays 1, and one stays there; the discount is a half."""
    if kind == "double-q":
        loss: Loss = DoubleQLoss(QPolicy(CORRIDOR, CHOICE, hidden=()))
    elif kind == "c51":
        loss = CategoricalQLoss(QPolicy(CORRIDOR, CHOICE, hidden=(), distribution="c51", atoms=21, low=-1.0, high=3.0))
    else:
        loss = QuantileQLoss(QPolicy(CORRIDOR, CHOICE, hidden=(), distribution="quantile", atoms=8))
    update, generator = _update(loss), np.random.default_rng(0)
    for number in range(1_000):
        place, choice = generator.integers(0, LENGTH, ROWS), generator.integers(-1, 2, ROWS)
        batch = {
            "observation": np.eye(LENGTH, dtype=np.float32)[place],
            "next_observation": np.eye(LENGTH, dtype=np.float32)[place],
            "action": choice,
            "reward": (choice == PAYS[place]).astype(np.float32),
            "discount": np.full(ROWS, 0.5, np.float32),
        }
        update.update(batch, learning_rate=2e-2)
        if number % 20 == 0:
            update.sync_target()
    values = build(loss.policy, rows=LENGTH, apis=["q_values"], memory=_memory(update))
    found = values("q_values", observation=np.eye(LENGTH, dtype=np.float32))["output"]
    # what pays is worth 1 + 0.5 (1 + 0.5 (...)) = 2, another choice 0 + 0.5 * 2
    np.testing.assert_allclose(found, 1.0 + (np.arange(-1, 2) == PAYS[:, None]), atol=0.1)


def _memory(update: Update) -> Memory:
    return Memory(layout=update.layout, flat=update.parameters())


def test_the_policy_gradient_finds_the_choice_that_pays() -> None:
    loss = PolicyGradientLoss(ActorCriticPolicy(PLACE, CHOICE, hidden=(32,)))
    update, generator = _update(loss), np.random.default_rng(0)
    acting = _acting(loss, update)
    for _ in range(400):
        place = generator.uniform(-1, 1, (ROWS, 1)).astype(np.float32)
        acted = acting.act({"observation": place}, generator)
        reward = (acted["action"] == _right_choice(place)).astype(np.float32)
        batch = {"observation": place, **acted, "advantage": reward - acted["value"], "return": reward}
        update.update(batch, learning_rate=5e-3, value_coefficient=0.5, entropy_coefficient=0.01)
        acting.load(update.parameters())
    found = acting.greedy({"observation": PLACES})["action"]
    assert (found == _right_choice(PLACES))[np.abs(np.abs(PLACES[:, 0]) - 0.33) > 0.15].all()


def _probability(loss: Loss, update: Update, choice: int) -> float:
    """Of a choice, in the middle."""
    acting, generator = _acting(loss, update), np.random.default_rng(1)
    acted = acting.act({"observation": np.zeros((ROWS, 1), np.float32)}, generator)
    assert choice in acted["action"]
    return float(np.exp(acted["log_prob"][acted["action"] == choice][0]))


def test_cloning_does_as_was_done_and_marwil_what_went_well() -> None:
    """Half of the rows chose -1, which returned 0, and half 1, which returned 1."""
    policy, generator = ActorCriticPolicy(PLACE, CHOICE, hidden=()), np.random.default_rng(0)
    cloning, marwil = BehaviorCloningLoss(policy), MarwilLoss(policy)
    updates: dict[str, Update] = {"cloning": _update(cloning), "marwil": _update(marwil)}
    for _ in range(1_000):
        choice = 2 * generator.integers(0, 2, ROWS) - 1
        batch = {
            "observation": np.zeros((ROWS, 1), np.float32),
            "action": choice,
            "return": (choice == 1).astype(np.float32),
        }
        updates["cloning"].update(batch, learning_rate=1e-2)
        updates["marwil"].update(batch, learning_rate=1e-2, beta=1.0, advantage_scale=0.5, value_coefficient=1.0)
    # the value is 0.5, so advantages are ±0.5 and weights e and 1/e
    assert _probability(cloning, updates["cloning"], 1) == pytest.approx(0.5, abs=0.07)
    assert _probability(marwil, updates["marwil"], 1) == pytest.approx(np.e / (np.e + 1 / np.e), abs=0.03)


def _walk(generator: np.random.Generator) -> dict[str, Any]:
    """A corridor of 4 places, walked at random: 1 goes on, 0 back to the begin; past the end is a reward of 1, and a new episode."""
    rows, place, final = [], 0, False
    for _ in range(STEPS + 1):
        turn = int(generator.integers(0, 2))
        past = not final and turn == 1 and place == LENGTH - 1
        rows.append(
            {
                "observation": np.eye(LENGTH)[place],
                "action": turn,
                "log_prob": np.log(0.5),
                "reward": float(past),
                "discount": 0.0 if past else DISCOUNT,
                "continues": 0.0 if past or final else 1.0,
                "weight": 0.0 if final else 1.0,
            }
        )
        if final:
            place = 0
        elif not past:
            place = place + 1 if turn else 0
        final = past
    return {name: np.asarray([row[name] for row in rows], np.int64 if name == "action" else np.float32) for name in rows[0]}


def test_vtrace_learns_the_corridor_from_steps_of_a_policy_that_walks_at_random() -> None:
    loss = VtraceLoss(ActorCriticPolicy(CORRIDOR, TURN, hidden=()), steps=STEPS)
    update, generator = _update(loss), np.random.default_rng(0)
    for _ in range(600):
        walks = [_walk(generator) for _ in range(ROWS)]
        batch = {name: np.stack([walk[name] for walk in walks]) for name in walks[0]}
        update.update(batch, learning_rate=2e-2, value_coefficient=0.5, entropy_coefficient=0.001)
    acting, places = _acting(loss, update), {"observation": np.eye(LENGTH, dtype=np.float32)}
    assert acting.greedy(places)["action"].tolist() == [1, 1, 1, 1]
    np.testing.assert_allclose(acting.values(places), DISCOUNT ** np.arange(LENGTH - 1, -1, -1), atol=0.05)
