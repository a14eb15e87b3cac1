"""Updates by torch eager: any optimizer, learning rates by group, parts of a minibatch, mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, Adam, DoubleQLoss, PpoLoss, QPolicy, Update, build_update
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.inputs import sample
from rollstream.graph.optimizers import AdamW, Optimizer, RmsProp, Sgd, ValueClip
from rollstream.spaces import Leaf

SETTINGS: dict[str, Any] = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
ROWS = 8
OPTIMIZERS: list[Optimizer] = [
    Adam(),
    AdamW(weight_decay=0.1),
    Sgd(),
    Sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
    RmsProp(centered=True, momentum=0.5),
    ValueClip(Adam(), limit=1e-3),
]


@pytest.fixture
def ppo(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> PpoLoss:
    return PpoLoss(ActorCriticPolicy((box(4),), (discrete(2),), hidden=(8,)))


def _columns(loss: PpoLoss | DoubleQLoss, rows: int = ROWS) -> dict[str, np.ndarray]:
    drawn = sample(loss.arguments("loss"), rows=rows, generator=np.random.default_rng(0))
    columns = {name: column for name, column in drawn.items() if column.ndim}
    return {**columns, "weight": np.ones(rows, np.float32)}


def _gradient(loss: PpoLoss, update: Update, columns: dict[str, np.ndarray]) -> np.ndarray:
    """By a step of plain gradient descent of size 1."""
    probe = build_update(loss, batch_rows=ROWS, optimizer=Sgd(), max_grad_norm=None, parameters=update.parameters())
    before = probe.parameters()
    probe.update(columns, learning_rate=1.0, **SETTINGS)
    return before - probe.parameters()


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
@pytest.mark.parametrize("groups", [None, {"policy.*": 0.25, "torso.*": 0.0}])
def test_every_optimizer_steps_as_its_formula_says(ppo: PpoLoss, optimizer: Optimizer, groups: dict[str, float] | None) -> None:
    update = build_update(ppo, batch_rows=ROWS, optimizer=optimizer, max_grad_norm=None, groups=groups, seed=0)
    columns, parameters = _columns(ppo), update.parameters()
    slots = tuple(np.zeros_like(parameters) for _ in optimizer.slots)
    rate = np.concatenate(
        [
            np.full(item.size, 0.01 * (1.0 if groups is None else groups.get(f"{item.name.split('.')[0]}.*", 1.0)), np.float32)
            for item in update.layout.parameters
        ]
    )
    for count in (1, 2, 3):
        gradient = _gradient(ppo, update, columns)
        moved = optimizer.step(NumpyOps(), parameters, slots, gradient, count=np.float32(count), learning_rate=rate)
        parameters, slots = moved.parameters, moved.slots
        update.update(columns, learning_rate=0.01, **SETTINGS)
        np.testing.assert_allclose(update.parameters(), parameters, atol=2e-5)
    assert update.updates == 3


@pytest.mark.parametrize("parts", [2, 4])
def test_a_minibatch_in_parts_gives_the_gradient_of_the_whole(ppo: PpoLoss, parts: int) -> None:
    columns = _columns(ppo)
    whole, split = (build_update(ppo, batch_rows=ROWS, seed=0, accumulate=count, optimizer=Sgd()) for count in (1, parts))
    for _ in range(3):
        one, other = (update.update(columns, learning_rate=0.1, **SETTINGS).metrics for update in (whole, split))
        assert one == pytest.approx(other, abs=1e-6)
        np.testing.assert_allclose(split.parameters(), whole.parameters(), atol=1e-6)


def test_parts_that_are_padding_only_count_for_nothing(ppo: PpoLoss) -> None:
    columns = {name: column[:3] for name, column in _columns(ppo).items()}
    whole, split = (build_update(ppo, batch_rows=ROWS, seed=0, accumulate=count, optimizer=Sgd()) for count in (1, 4))
    for update in (whole, split):
        metrics = update.update_many(columns, epochs=2, generator=np.random.default_rng(0), learning_rate=0.1, **SETTINGS)
        assert metrics["updates"] == 2.0
    np.testing.assert_allclose(split.parameters(), whole.parameters(), atol=1e-6)


def test_rows_of_all_parts_come_back_in_order(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> None:
    loss = DoubleQLoss(QPolicy((box(4),), (discrete(2),), hidden=(8,)))
    found = [
        build_update(loss, batch_rows=ROWS, seed=0, accumulate=parts)
        .update(_columns(loss), learning_rate=0.0)
        .outputs["td_error"]
        for parts in (1, 4)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_mixed_precision_is_close_and_is_not_the_same(ppo: PpoLoss) -> None:
    plain, mixed = (build_update(ppo, batch_rows=ROWS, seed=0, mixed_precision=mixed, optimizer=Sgd()) for mixed in (False, True))
    for update in (plain, mixed):
        update.update(_columns(ppo), learning_rate=0.1, **SETTINGS)
    difference = np.abs(plain.parameters() - mixed.parameters()).max()
    assert 0.0 < difference < 1e-2
    assert mixed.parameters().dtype == np.float32


def test_options_that_a_mode_or_a_machine_does_not_have_are_refused(ppo: PpoLoss) -> None:
    with pytest.raises(ConfigError, match="mode 'numpy' does not know accumulate, got 2; use mode 'torch' or 'torch-graph'"):
        build_update(ppo, batch_rows=ROWS, seed=0, mode="numpy", accumulate=2)
    with pytest.raises(ConfigError, match="accumulate must be >= 1 and divide batch_rows 8, got 3"):
        build_update(ppo, batch_rows=ROWS, seed=0, accumulate=3)
    with pytest.raises(ConfigError, match="device 'tpu' cannot be used: known are cpu and cuda; use device 'cpu'"):
        build_update(ppo, batch_rows=ROWS, seed=0, device="tpu")


def test_the_state_may_lie_elsewhere(ppo: PpoLoss, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no GPU: tensors that do not share memory with the arrays, as on one."""
    from rollstream.graph.backends.torch import tensors

    class Apart(tensors.StateTensors):
        def __init__(self, state, *, device):  # type: ignore[no-untyped-def]
            super().__init__(state, device=device)
            self._tensors = [tensor.clone() for tensor in self._tensors]
            self.parameters, self.slots, self.state, self.count, self.target, self.sums, self.tally = self._tensors
            self._elsewhere = True

    near = build_update(ppo, batch_rows=ROWS, seed=0)
    monkeypatch.setattr("rollstream.graph.backends.torch.eager_update.StateTensors", Apart)
    far = build_update(ppo, batch_rows=ROWS, seed=0)
    columns = _columns(ppo, 2 * ROWS)
    for update in (near, far):
        update.load_state(build_update(ppo, batch_rows=ROWS, seed=3).state())
    found = [
        update.update_many(columns, epochs=2, generator=np.random.default_rng(0), learning_rate=0.01, **SETTINGS)
        for update in (near, far)
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-6)
    assert far.updates == 4
    for name, array in near.state().items():
        np.testing.assert_allclose(far.state()[name], array, atol=1e-6)
