"""The loss of R2D2 beside the formulas of its paper, with torch's own LSTM cell: same number, same gradient, same priorities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from rollstream.errors import ConfigError
from rollstream.graph.component_test import component_test
from rollstream.graph.losses import SequenceQLoss
from rollstream.graph.policies import RecurrentQPolicy
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]
BURN_IN, STEPS, ETA = 2, 3, 0.9
ROWS = 16


def h(x: torch.Tensor) -> torch.Tensor:
    return x.sign() * ((x.abs() + 1.0).sqrt() - 1.0) + 1e-3 * x


def inverse(x: torch.Tensor) -> torch.Tensor:
    x = x.double()
    return (x.sign() * ((((1.0 + 4e-3 * (x.abs() + 1.001)).sqrt() - 1.0) / 2e-3) ** 2 - 1.0)).float()


@pytest.mark.parametrize("rescale", [True, False])
def test_r2d2(box: Leaves, discrete: Leaves, compare: Callable[..., Any], rescale: bool) -> None:
    units = 5
    priorities: list[torch.Tensor] = []

    def unrolled(p: Any, x: Any) -> torch.Tensor:
        """Values [B, L + 1, A]; no gradient through the burn-in."""
        hidden, cell = x["recurrent.torso"].split(units, dim=-1)
        out = []
        for step in range(BURN_IN + STEPS + 1):
            keep = (1.0 - x["first"][:, step])[:, None]
            hidden, cell = hidden * keep, cell * keep
            if step <= BURN_IN:
                hidden, cell = hidden.detach(), cell.detach()
            seen = torch.relu(x["observation"][:, step] @ p["torso.0.weight"] + p["torso.0.bias"])
            gates = seen @ p["torso.recurrent.weight"] + p["torso.recurrent.bias"] + hidden @ p["torso.recurrent.hidden_weight"]
            i, f, g, o = gates.split(units, dim=-1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            out.append(hidden @ p["head.weight"] + p["head.bias"])
        return torch.stack(out[BURN_IN:], dim=1)

    def plain(p: Any, far: Any, x: Any) -> torch.Tensor:
        now = unrolled(p, x)
        with torch.no_grad():
            ahead = unrolled(far, x).gather(2, now.argmax(-1)[..., None])[..., 0]
            reached = ahead.gather(1, x["bootstrap"])
            target = x["reward"] + x["discount"] * (inverse(reached) if rescale else reached)
            target = h(target) if rescale else target
        taken = now[:, :-1].gather(2, (x["action"] + 1)[..., None])[..., 0]
        error = (target - taken) * x["valid"]
        size = error.abs().detach()
        priorities.append(ETA * size.max(-1).values + (1 - ETA) * size.sum(-1) / x["valid"].sum(-1).clamp(min=1))
        return (x["weight"] * (0.5 * error**2).sum(-1) / STEPS).mean()

    policy = RecurrentQPolicy(box, discrete, hidden=(6,), recurrent_units=units)
    loss = SequenceQLoss(policy, steps=STEPS, burn_in=BURN_IN, rescale=rescale, eta=ETA)
    first = np.zeros((ROWS, BURN_IN + STEPS + 1))
    first[::3, 1] = 1.0
    valid = np.ones((ROWS, STEPS))
    valid[1::2, 2] = 0.0
    case = compare(loss, plain, first=first, valid=valid)
    np.testing.assert_allclose(case.result.rows["td_error"], priorities[0].numpy(), rtol=1e-4)


@pytest.mark.parametrize("burn_in", [0, 2])
def test_modes_agree(box: Leaves, discrete: Leaves, burn_in: int) -> None:
    component_test(SequenceQLoss(RecurrentQPolicy(box, discrete, hidden=(6,), recurrent_units=5), steps=3, burn_in=burn_in))


def test_sequences_without_steps_are_refused(box: Leaves, discrete: Leaves) -> None:
    with pytest.raises(ConfigError, match="SequenceQLoss: steps must be >= 1 and burn_in >= 0, got 0 and -1"):
        SequenceQLoss(RecurrentQPolicy(box, discrete), steps=0, burn_in=-1)
