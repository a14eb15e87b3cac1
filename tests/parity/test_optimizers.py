"""Optimizers against those of torch and optax: the same parameters after 100 steps of random gradients at a learning rate that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.optimizers import Adam, AdamW, Constant, Cosine, Linear, Moved, Optimizer, RmsProp, Schedule, Sgd

STEPS, SIZE = 100, 257
TOLERANCE = 1e-6

CASES: dict[str, tuple[Optimizer, Schedule, Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "sgd": (
        Sgd(),
        Constant(0.01),
        lambda at: torch.optim.SGD([at], lr=1.0),
        lambda optax, rate: optax.sgd(rate),
    ),
    "sgd-momentum": (
        Sgd(momentum=0.9),
        Linear(start=2e-3, end=2e-4, over_steps=80),
        lambda at: torch.optim.SGD([at], lr=1.0, momentum=0.9),
        lambda optax, rate: optax.sgd(rate, momentum=0.9),
    ),
    "sgd-nesterov-decay": (
        Sgd(momentum=0.5, nesterov=True, weight_decay=0.1),
        Cosine(start=1e-2, end=0.0, over_steps=100),
        lambda at: torch.optim.SGD([at], lr=1.0, momentum=0.5, nesterov=True, weight_decay=0.1),
        lambda optax, rate: optax.chain(optax.add_decayed_weights(0.1), optax.sgd(rate, momentum=0.5, nesterov=True)),
    ),
    "rmsprop": (
        RmsProp(),
        Constant(1e-3),
        lambda at: torch.optim.RMSprop([at], lr=1.0),
        lambda optax, rate: optax.rmsprop(rate, decay=0.99, eps=1e-8, eps_in_sqrt=False),
    ),
    "rmsprop-centered-momentum": (
        RmsProp(decay=0.9, epsilon=1e-2, centered=True, momentum=0.5),
        Linear(start=1e-3, end=1e-4, over_steps=80),
        lambda at: torch.optim.RMSprop([at], lr=1.0, alpha=0.9, eps=1e-2, centered=True, momentum=0.5),
        # optax keeps the learning rate in the sum of steps, so here it stands outside
        lambda optax, rate: optax.chain(
            optax.scale_by_stddev(decay=0.9, eps=1e-2, eps_in_sqrt=False), optax.trace(0.5), optax.scale_by_learning_rate(rate)
        ),
    ),
    "rmsprop-tensorflow": (
        RmsProp(decay=0.95, epsilon=0.1, epsilon_in_root=True, initial_square=1.0),
        Cosine(start=1e-3, end=1e-4, over_steps=60),
        lambda at: None,
        lambda optax, rate: optax.rmsprop(rate, decay=0.95, eps=0.1, eps_in_sqrt=True, initial_scale=1.0),
    ),
    "adam": (
        Adam(),
        Constant(1e-3),
        lambda at: torch.optim.Adam([at], lr=1.0, eps=1e-5),
        lambda optax, rate: optax.adam(rate, eps=1e-5),
    ),
    "adam-other-decays": (
        Adam(b1=0.5, b2=0.9, epsilon=1e-8),
        Linear(start=2e-3, end=0.0, over_steps=90),
        lambda at: torch.optim.Adam([at], lr=1.0, betas=(0.5, 0.9), eps=1e-8),
        lambda optax, rate: optax.adam(rate, b1=0.5, b2=0.9, eps=1e-8),
    ),
    "adamw": (
        AdamW(weight_decay=0.1),
        Cosine(start=2e-3, end=1e-4, over_steps=100),
        lambda at: torch.optim.AdamW([at], lr=1.0, eps=1e-5, weight_decay=0.1),
        lambda optax, rate: optax.adamw(rate, eps=1e-5, weight_decay=0.1),
    ),
}


def _start() -> np.ndarray:
    return np.random.default_rng(0).uniform(-0.5, 0.5, SIZE).astype(np.float32)


def _gradients() -> Iterator[np.ndarray]:
    """Of sizes from 0.01 to 10, as those of layers are."""
    generator = np.random.default_rng(1)
    size = 10.0 ** generator.uniform(-2, 1, SIZE)
    for _ in range(STEPS):
        yield (generator.normal(0.3, 1.0, SIZE) * size).astype(np.float32)


def _ours(ops: Any, optimizer: Optimizer, rate: Schedule, array: Callable[[Any], Any]) -> np.ndarray:
    moved = Moved(parameters=array(_start()), slots=tuple(array(np.zeros(SIZE, np.float32)) for _ in optimizer.slots))
    for number, gradient in enumerate(_gradients()):
        count, step = array(np.asarray(number + 1, np.float32)), array(gradient)
        moved = optimizer.step(ops, moved.parameters, moved.slots, step, count=count, learning_rate=rate.at(number))
    return np.asarray(moved.parameters)


@pytest.mark.parametrize("name", CASES)
def test_numpy_and_torch_compute_the_same(name: str) -> None:
    optimizer, rate, _, _ = CASES[name]
    by_torch = _ours(TorchOps(), optimizer, rate, torch.from_numpy)
    np.testing.assert_allclose(_ours(NumpyOps(), optimizer, rate, np.asarray), by_torch, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in CASES if name != "rmsprop-tensorflow"])
def test_it_is_torchs(name: str) -> None:
    optimizer, rate, make, _ = CASES[name]
    at = torch.from_numpy(_start()).requires_grad_()
    theirs = make(at)
    for number, gradient in enumerate(_gradients()):
        theirs.param_groups[0]["lr"] = rate.at(number)
        at.grad = torch.from_numpy(gradient)
        theirs.step()
    ours = _ours(NumpyOps(), optimizer, rate, np.asarray)
    assert np.abs(ours - _start()).max() > 1e-2  # they went somewhere
    np.testing.assert_allclose(ours, at.detach().numpy(), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_it_is_optaxs(name: str) -> None:
    optax = pytest.importorskip("optax")
    optimizer, rate, _, make = CASES[name]
    rates = np.asarray([rate.at(number) for number in range(STEPS)], np.float32)
    theirs = make(optax, lambda count: rates[int(count)])
    parameters = _start()
    state = theirs.init(parameters)
    for gradient in _gradients():
        updates, state = theirs.update(gradient, state, parameters)
        parameters = np.asarray(optax.apply_updates(parameters, updates))
    np.testing.assert_allclose(_ours(NumpyOps(), optimizer, rate, np.asarray), parameters, rtol=0, atol=TOLERANCE)
