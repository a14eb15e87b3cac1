"""Every loss in every update mode that builds at once: the same parameters after several updates with each optimizer."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("jax")

from rollstream.errors import SchemaMismatch
from rollstream.graph import build_update
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.losses import (
    BehaviorCloningLoss,
    CategoricalQLoss,
    DoubleQLoss,
    Loss,
    MarwilLoss,
    PolicyGradientLoss,
    PpoLoss,
    QuantileQLoss,
    SoftActorCriticLoss,
    TwinDelayedLoss,
    VtraceLoss,
)
from rollstream.graph.modes import Update
from rollstream.graph.optimizers import Adam, AdamW, Optimizer, RmsProp, Sgd, ValueClip
from rollstream.graph.policies import ActorCriticPolicy, DeterministicActorCritic, QPolicy, SoftActorCritic
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]
MODES = ("torch", "numpy", "jax")
ROWS = 8


def _losses(box: Leaves, discrete: Leaves, continuous: Leaves) -> dict[str, Loss]:
    policy = ActorCriticPolicy(box, discrete, hidden=(5,))
    remembering = ActorCriticPolicy(box, discrete, hidden=(5,), recurrent="gru", recurrent_units=4)
    return {
        "policy-gradient": PolicyGradientLoss(policy),
        "ppo": PpoLoss(policy, clip_value=True, kl_penalty=True),
        "ppo-sequences": PpoLoss(remembering, steps=3),
        "vtrace": VtraceLoss(policy, steps=3),
        "cloning": BehaviorCloningLoss(policy, value=True),
        "marwil": MarwilLoss(policy),
        "double-q": DoubleQLoss(QPolicy(box, discrete, hidden=(5,), dueling=True), rescale=True, conservative=0.5),
        "c51": CategoricalQLoss(QPolicy(box, discrete, hidden=(5,), distribution="c51", atoms=7, low=-2.0, high=2.0)),
        "quantile": QuantileQLoss(QPolicy(box, discrete, hidden=(5,), distribution="quantile", atoms=5)),
        "sac": SoftActorCriticLoss(SoftActorCritic(box, continuous, hidden=(5,)), target_entropy=-2.0),
        "td3": TwinDelayedLoss(DeterministicActorCritic(box, continuous, hidden=(5,))),
    }


NAMES = ("policy-gradient", "ppo", "ppo-sequences", "vtrace", "cloning", "marwil", "double-q", "c51", "quantile", "sac", "td3")

OPTIMIZERS: dict[str, Optimizer] = {
    "adam": Adam(),
    "adamw": AdamW(weight_decay=0.1),
    "sgd": Sgd(),
    "sgd-momentum": Sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
    "rmsprop": RmsProp(epsilon=1e-3),
    "rmsprop-all": RmsProp(decay=0.9, epsilon=1e-2, epsilon_in_root=True, initial_square=1.0, centered=True, momentum=0.5),
    "value-clip": ValueClip(Sgd(), limit=1e-3),
}


def _updated(update: Update, loss: Loss, *, learning_rate: float = 1e-2, updates: int = 4) -> dict[str, np.ndarray]:
    """The state after some updates with rows of their own."""
    generator = np.random.default_rng(0)
    for _ in range(updates):
        drawn = sample(loss.arguments("loss"), rows=ROWS, generator=generator)
        roles = {item.name: item.role for item in flat_inputs(loss.arguments("loss"))}
        batch = {name: column for name, column in drawn.items() if roles[name] == "column"}
        scalars = {name: float(column) for name, column in drawn.items() if roles[name] == "scalar"}
        assert update.update(batch, learning_rate=learning_rate, **scalars).metrics["updates"] == 1
    return update.state()


@pytest.mark.parametrize("name", NAMES)
def test_losses_move_parameters_alike_in_all_modes(box: Leaves, discrete: Leaves, continuous: Leaves, name: str) -> None:
    loss = _losses(box, discrete, continuous)[name]
    states = {}
    for mode in MODES:
        update = build_update(loss, batch_rows=ROWS, optimizer=Sgd(momentum=0.9), mode=mode, seed=0)
        start = update.parameters()
        states[mode] = _updated(update, loss)
        assert np.abs(states[mode]["parameters"] - start).max() > 1e-3
    for mode in MODES[1:]:
        for part, array in states["torch"].items():
            np.testing.assert_allclose(states[mode][part], array, atol=1e-5, err_msg=f"{mode}: {part}")


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_move_parameters_alike_in_all_modes(box: Leaves, discrete: Leaves, name: str) -> None:
    loss, optimizer = PolicyGradientLoss(ActorCriticPolicy(box, discrete, hidden=(5,))), OPTIMIZERS[name]
    states = {
        mode: _updated(
            build_update(loss, batch_rows=ROWS, optimizer=optimizer, groups={"value.*": 0.5, "*.bias": 0.0}, mode=mode, seed=0),
            loss,
        )
        for mode in MODES
    }
    assert set(states["torch"]) == {"parameters", *optimizer.slots, "count"}
    for mode in MODES[1:]:
        for part, array in states["torch"].items():
            np.testing.assert_allclose(states[mode][part], array, atol=1e-5, err_msg=f"{mode}: {part}")


@pytest.mark.parametrize("mode", MODES)
def test_groups_scale_the_steps_of_their_parameters(box: Leaves, discrete: Leaves, mode: str) -> None:
    loss = PolicyGradientLoss(ActorCriticPolicy(box, discrete, hidden=(5,)))
    plain, scaled = (
        build_update(loss, batch_rows=ROWS, optimizer=Sgd(), groups=groups, mode=mode, seed=0, max_grad_norm=None)
        for groups in (None, {"value.*": 2.0, "torso.*": 0.0})
    )
    start = plain.layout.split(plain.parameters())
    moved = [update.layout.split(_updated(update, loss, updates=1)["parameters"]) for update in (plain, scaled)]
    for name, before in start.items():
        factor = 2.0 if name.startswith("value.") else 0.0 if name.startswith("torso.") else 1.0
        np.testing.assert_allclose(moved[1][name] - before, factor * (moved[0][name] - before), atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_run_continues_from_the_slots_of_its_state(box: Leaves, discrete: Leaves, mode: str) -> None:
    loss = PolicyGradientLoss(ActorCriticPolicy(box, discrete, hidden=(5,)))
    whole, first, second = (
        build_update(loss, batch_rows=ROWS, optimizer=RmsProp(centered=True, momentum=0.5), mode=mode, seed=0) for _ in range(3)
    )
    _updated(whole, loss)
    _updated(first, loss)
    second.load_state(first.state())
    np.testing.assert_array_equal(_updated(second, loss)["parameters"], _updated(whole, loss)["parameters"])


def test_the_state_of_another_optimizer_is_refused_by_the_name_of_what_is_missing(box: Leaves, discrete: Leaves) -> None:
    loss = PolicyGradientLoss(ActorCriticPolicy(box, discrete, hidden=(5,)))
    adam, rmsprop = (build_update(loss, batch_rows=ROWS, optimizer=made, seed=0) for made in (Adam(), RmsProp()))
    with pytest.raises(SchemaMismatch, match="update state mean_square: needs shape .*, got nothing"):
        rmsprop.load_state(adam.state())
