"""Updates by XLA against updates by torch eager: same parameters from the same data, and the one's state continues in the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("jax")

from rollstream.graph import ActorCriticPolicy, Adam, DoubleQLoss, PpoLoss, QPolicy, Update, build_update
from rollstream.graph.inputs import sample
from rollstream.graph.optimizers import RmsProp, Sgd
from rollstream.spaces import Leaf

ROWS = 32
LEARNING_RATE = 1e-2
SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
NAMES = ("ppo", "double_q")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One loss, data for it, and both updates of it."""

    loss: Any
    columns: dict[str, np.ndarray]
    settings: dict[str, float]
    torch: Update
    jax: Update

    def restart(self) -> None:
        """Both as they were built."""
        state = self.build("torch").state()
        for update in (self.torch, self.jax):
            update.load_state(state)

    def build(self, mode: str, **changes: Any) -> Update:
        return _build(self.loss, mode, **changes)

    def epochs(self, update: Update, epochs: int = 1, seed: int = 1) -> dict[str, float]:
        generator = np.random.default_rng(seed)
        return update.update_many(self.columns, epochs=epochs, generator=generator, learning_rate=LEARNING_RATE, **self.settings)

    def agree(self, *, atol: float = 1e-5) -> None:
        ours = self.jax.state()
        for name, array in self.torch.state().items():
            np.testing.assert_allclose(ours[name], array, atol=atol, err_msg=name)


def _build(loss: Any, mode: str, **changes: Any) -> Update:
    settings: dict[str, Any] = {"optimizer": Adam(b1=0.8, b2=0.95, epsilon=1e-4), "max_grad_norm": 0.2, **changes}
    return build_update(loss, batch_rows=ROWS, mode=mode, seed=5, **settings)  # type: ignore[arg-type]


def _case(loss: Any, settings: dict[str, float]) -> Case:
    drawn = sample(loss.arguments("loss"), rows=4 * ROWS - 7, generator=np.random.default_rng(0))
    columns = {item: column for item, column in drawn.items() if column.ndim}
    return Case(loss=loss, columns=columns, settings=settings, torch=_build(loss, "torch"), jax=_build(loss, "jax"))


@pytest.fixture(scope="module")
def case(observation: tuple[Leaf, ...], action: Leaf) -> Callable[[str], Case]:
    """The case of that name, as it was built."""
    made = {
        "ppo": _case(PpoLoss(ActorCriticPolicy(observation, (action,), hidden=(16, 16))), SETTINGS),
        "double_q": _case(DoubleQLoss(QPolicy(observation, (action,), hidden=(16, 16), dueling=True)), {}),
    }

    def find(name: str) -> Case:
        made[name].restart()
        return made[name]

    return find


@pytest.mark.parametrize("name", NAMES)
def test_both_agree_after_16_updates(case: Callable[[str], Case], name: str) -> None:
    found = case(name)
    theirs, ours = found.epochs(found.torch, 4), found.epochs(found.jax, 4)
    assert ours["updates"] == 16
    assert theirs == pytest.approx(ours, abs=1e-5)
    found.agree()


@pytest.mark.parametrize("name", NAMES)
def test_each_continues_the_state_of_the_other(case: Callable[[str], Case], name: str) -> None:
    found = case(name)
    found.epochs(found.torch, 4)
    found.restart()
    for number, (now, then) in enumerate(((found.torch, found.jax), (found.jax, found.torch))):
        found.epochs(now, 1, seed=number)
        then.load_state(now.state())
        found.agree(atol=0.0)
    assert found.torch.updates == 8
    alone = case(name).build("torch")
    for number in range(2):
        found.epochs(alone, 1, seed=number)
    found.epochs(found.jax, 1, seed=0)
    found.torch.load_state(found.jax.state())
    found.epochs(found.torch, 1, seed=1)
    np.testing.assert_allclose(found.torch.parameters(), alone.parameters(), atol=1e-5)


def test_the_target_network_and_rows_agree(case: Callable[[str], Case]) -> None:
    found = case("double_q")
    batch = {name: column[:ROWS] for name, column in found.columns.items()}
    for share in (1.0, 0.25):
        theirs, ours = (update.update(batch, learning_rate=LEARNING_RATE) for update in (found.torch, found.jax))
        np.testing.assert_allclose(ours.outputs["td_error"], theirs.outputs["td_error"], atol=1e-5)
        for update in (found.torch, found.jax):
            update.sync_target(share=share)
    found.agree()


def test_both_skip_the_same_minibatches(case: Callable[[str], Case]) -> None:
    found = case("ppo")
    spoiled = replace(found, columns={**found.columns, "advantage": found.columns["advantage"].copy()})
    spoiled.columns["advantage"][3] = np.nan
    theirs, ours = spoiled.epochs(found.torch, 2), spoiled.epochs(found.jax, 2)
    assert (ours["updates"], ours["skipped_updates"]) == (6.0, 2.0)
    assert theirs == pytest.approx(ours, abs=1e-5)
    found.agree()


@pytest.mark.parametrize("changes", [{"max_grad_norm": None}, {"optimizer": RmsProp()}, {"optimizer": Sgd(momentum=0.9)}])
def test_other_settings_agree(case: Callable[[str], Case], changes: dict[str, Any]) -> None:
    found = case("ppo")
    built = replace(found, torch=found.build("torch", **changes), jax=found.build("jax", **changes))
    for update in (built.torch, built.jax):
        built.epochs(update, 2)
    built.agree()


@pytest.mark.parametrize("kind", ["convolutions", "lstm"])
def test_slopes_through_images_and_time_agree(action: Leaf, kind: str) -> None:
    shape, high = ((36, 36, 3), 255.0) if kind == "convolutions" else ((4,), 1.0)
    size = math.prod(shape)
    dtype = "|u1" if kind == "convolutions" else "<f4"
    seen = Leaf(name="observation", kind="box", dtype=dtype, shape=shape, low=(0.0,) * size, high=(high,) * size)
    if kind == "convolutions":
        loss = PpoLoss(ActorCriticPolicy((seen,), (action,), convolutions="atari", hidden=(16,), activation="relu"))
    else:
        loss = PpoLoss(ActorCriticPolicy((seen,), (action,), hidden=(8,), recurrent="lstm", recurrent_units=6), steps=5)
    drawn = sample(loss.arguments("loss"), rows=2 * ROWS, generator=np.random.default_rng(0))
    columns = {name: column for name, column in drawn.items() if column.ndim}
    updates = [_build(loss, mode, optimizer=Sgd()) for mode in ("torch", "jax")]
    for update in updates:
        update.update_many(columns, epochs=2, generator=np.random.default_rng(1), learning_rate=0.1, **SETTINGS)
    theirs, ours = (update.parameters() for update in updates)
    np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(ours - _build(loss, "torch").parameters()).max() > 1e-3
