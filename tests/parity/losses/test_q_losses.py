"""Losses of action values and of their distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from rollstream.graph.component_test import component_test
from rollstream.graph.losses import CategoricalQLoss, DoubleQLoss, QuantileQLoss
from rollstream.graph.policies import QPolicy
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]


@pytest.mark.parametrize(("rescale", "conservative"), [(False, 0.0), (True, 0.0), (False, 0.5)])
def test_double_q(box: Leaves, discrete: Leaves, compare: Callable[..., Any], rescale: bool, conservative: float) -> None:
    def values(p: Any, observation: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(observation @ p["torso.0.weight"] + p["torso.0.bias"])
        return hidden @ p["head.weight"] + p["head.bias"]

    def h(x: torch.Tensor) -> torch.Tensor:
        return x.sign() * ((x.abs() + 1.0).sqrt() - 1.0) + 1e-3 * x

    def inverse(x: torch.Tensor) -> torch.Tensor:
        x = x.double()
        return (x.sign() * ((((1.0 + 4e-3 * (x.abs() + 1.001)).sqrt() - 1.0) / 2e-3) ** 2 - 1.0)).float()

    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        rows = torch.arange(len(x["reward"]))
        with torch.no_grad():
            best = values(p, x["next_observation"]).argmax(-1)
            after = values(far, x["next_observation"])[rows, best]
            target = x["reward"] + x["discount"] * after
            if rescale:
                target = h(x["reward"] + x["discount"] * inverse(after))
        now = values(p, x["observation"])
        taken = now[rows, x["action"] + 1]
        each = torch.nn.functional.huber_loss(taken, target, reduction="none", delta=0.5)
        each = each + conservative * (now.logsumexp(-1) - taken)
        return (x["weight"] * each).mean()

    loss = DoubleQLoss(QPolicy(box, discrete, hidden=(6,)), huber_delta=0.5, rescale=rescale, conservative=conservative)
    compare(loss, plain)
    component_test(loss)


def test_c51(box: Leaves, discrete: Leaves, compare: Callable[..., Any]) -> None:
    atoms, low, high = 7, -1.5, 1.5

    def log_probs(p: Any, observation: torch.Tensor) -> torch.Tensor:
        logits = observation @ p["head.weight"] + p["head.bias"]
        return torch.log_softmax(logits.view(-1, 4, atoms), -1)

    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        support, step = torch.linspace(low, high, atoms), (high - low) / (atoms - 1)
        rows = torch.arange(len(x["reward"]))
        with torch.no_grad():
            best = (log_probs(p, x["next_observation"]).exp() * support).sum(-1).argmax(-1)
            after = log_probs(far, x["next_observation"]).exp()[rows, best]
            target = torch.zeros_like(after)
            for row in rows:  # algorithm 1, as it stands
                for j in range(atoms):
                    moved = (x["reward"][row] + x["discount"][row] * support[j]).clamp(low, high)
                    b = float((moved - low) / step)
                    lower, upper = int(np.floor(b)), int(np.ceil(b))
                    if lower == upper:
                        target[row, lower] += after[row, j]
                    else:
                        target[row, lower] += after[row, j] * (upper - b)
                        target[row, upper] += after[row, j] * (b - lower)
        now = log_probs(p, x["observation"])[rows, x["action"] + 1]
        return (x["weight"] * -(target * now).sum(-1)).mean()

    loss = CategoricalQLoss(QPolicy(box, discrete, hidden=(), distribution="c51", atoms=atoms, low=low, high=high))
    found = compare(loss, plain)
    assert (found.result.rows["td_error"] > 0).all()
    component_test(loss)


@pytest.mark.parametrize("delta", [1.0, 0.2])
def test_quantile_regression(box: Leaves, discrete: Leaves, compare: Callable[..., Any], delta: float) -> None:
    count = 5

    def quantiles(p: Any, observation: torch.Tensor) -> torch.Tensor:
        return (observation @ p["head.weight"] + p["head.bias"]).view(-1, 4, count)

    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        rows, total = torch.arange(len(x["reward"])), torch.zeros(())
        best = quantiles(p, x["next_observation"]).mean(-1).argmax(-1)
        after = quantiles(far, x["next_observation"])[rows, best]
        target = (x["reward"][:, None] + x["discount"][:, None] * after).detach()
        now = quantiles(p, x["observation"])[rows, x["action"] + 1]
        for i in range(count):  # equation 10, as it stands
            for j in range(count):
                u = target[:, j] - now[:, i]
                side = ((2 * i + 1) / (2 * count) - (u < 0).float()).abs()
                huber = torch.nn.functional.huber_loss(now[:, i], target[:, j], reduction="none", delta=delta)
                total = total + (x["weight"] * side * huber / delta).mean() / count
        return total

    loss = QuantileQLoss(QPolicy(box, discrete, hidden=(), distribution="quantile", atoms=count), huber_delta=delta)
    compare(loss, plain)
    component_test(loss)
