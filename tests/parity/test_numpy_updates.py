"""Update mode `numpy` moves the parameters of every loss and kind of policy as torch does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.graph import (
    ActorCriticPolicy,
    DeterministicActorCritic,
    DoubleQLoss,
    PpoLoss,
    QPolicy,
    SoftActorCritic,
    build_update,
)
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.losses import (
    BehaviorCloningLoss,
    MarwilLoss,
    PolicyGradientLoss,
    SoftActorCriticLoss,
    TwinDelayedLoss,
    VtraceLoss,
)
from rollstream.graph.optimizers import AdamW, RmsProp, Sgd, ValueClip
from rollstream.spaces import Leaf

ROWS = 8
OBSERVATION = (
    Leaf(name="observation.x", kind="box", dtype="<f4", shape=(5,), low=(-1.0,) * 5, high=(1.0,) * 5),
    Leaf(name="observation.kind", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(1,)),
)
IMAGE = (Leaf(name="observation", kind="box", dtype="|u1", shape=(40, 40, 2), low=(0.0,) * 3200, high=(255.0,) * 3200),)
MASKED = (*OBSERVATION, Leaf(name="observation.action_mask", kind="multi_binary", dtype="|i1", shape=(3,)))
DISCRETE = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,))
CHOICES = Leaf(name="action", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(3, 2), starts=(0, 0))
BITS = Leaf(name="action", kind="multi_binary", dtype="|i1", shape=(3,))
BOX = Leaf(name="action", kind="box", dtype="<f4", shape=(2,), low=(-2.0, 0.0), high=(2.0, 6.0))


def _actor(*actions: Leaf, observation: tuple[Leaf, ...] = OBSERVATION, **settings: Any) -> ActorCriticPolicy:
    return ActorCriticPolicy(observation, actions or (DISCRETE,), **{"hidden": (8, 8), **settings})


CASES: dict[str, Callable[[], Any]] = {
    "ppo": lambda: PpoLoss(_actor(shared_torso=False)),
    "ppo of choices": lambda: PpoLoss(_actor(CHOICES, activation="elu")),
    "ppo of bits": lambda: PpoLoss(_actor(BITS, activation="silu")),
    "ppo of a clipped box": lambda: PpoLoss(_actor(BOX, bounds="clip")),
    "ppo of a squashed box": lambda: PpoLoss(_actor(BOX, bounds="squash", state_dependent_std=True)),
    "ppo with a mask": lambda: PpoLoss(_actor(observation=MASKED)),
    "ppo on images": lambda: PpoLoss(_actor(observation=IMAGE, convolutions="nature", activation="relu")),
    "ppo with an LSTM": lambda: PpoLoss(_actor(recurrent="lstm", recurrent_units=6), steps=3),
    "ppo with a GRU": lambda: PpoLoss(_actor(recurrent="gru", recurrent_units=6), steps=3),
    "policy gradient": lambda: PolicyGradientLoss(_actor()),
    "v-trace": lambda: VtraceLoss(_actor(), steps=4),
    "behavior cloning": lambda: BehaviorCloningLoss(_actor(), value=True),
    "marwil": lambda: MarwilLoss(_actor()),
    "double q": lambda: DoubleQLoss(QPolicy(OBSERVATION, (DISCRETE,), hidden=(8, 8))),
    "dueling double q": lambda: DoubleQLoss(QPolicy(OBSERVATION, (DISCRETE,), hidden=(8, 8), dueling=True), conservative=0.5),
    "sac": lambda: SoftActorCriticLoss(SoftActorCritic(OBSERVATION, (BOX,), hidden=(8, 8)), target_entropy=-2.0),
    "td3": lambda: TwinDelayedLoss(DeterministicActorCritic(OBSERVATION, (BOX,), hidden=(8, 8))),
}


def _moved(loss: Any, mode: Any, *, optimizer: Any, learning_rate: float, steps: int) -> np.ndarray:
    """The parameters after some updates."""
    generator = np.random.default_rng(0)
    update = build_update(loss, batch_rows=ROWS, optimizer=optimizer, max_grad_norm=None, mode=mode, seed=3)
    settings = {item.name: 0.5 * (item.low + item.high) for item in flat_inputs(loss.arguments("loss")) if item.role == "scalar"}
    for _ in range(steps):
        drawn = sample(loss.arguments("loss"), rows=ROWS, generator=generator)
        columns = {name: column for name, column in drawn.items() if name not in settings}
        metrics = update.update(columns, learning_rate=learning_rate, **settings).metrics
        assert metrics["skipped_updates"] == 0
    return update.parameters()


@pytest.mark.parametrize("name", CASES)
def test_parameters_move_as_in_torch(name: str) -> None:
    loss = CASES[name]()
    found, wanted = (_moved(loss, mode, optimizer=Sgd(), learning_rate=0.1, steps=3) for mode in ("numpy", "torch"))
    first = build_update(loss, batch_rows=ROWS, mode="numpy", seed=3).parameters()
    assert np.abs(wanted - first).max() > 1e-4
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("optimizer", [Sgd(momentum=0.9), RmsProp(), AdamW(weight_decay=0.1), ValueClip(Sgd(), limit=0.01)])
def test_every_optimizer_steps_as_in_torch(optimizer: Any) -> None:
    loss = PpoLoss(_actor())
    found, wanted = (_moved(loss, mode, optimizer=optimizer, learning_rate=1e-3, steps=8) for mode in ("numpy", "torch"))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)
