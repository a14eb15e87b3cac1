"""Layers that remember, against torch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rollstream.graph import declare
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Gru, Lstm
from rollstream.graph.inputs import Input
from rollstream.graph.spaced import Spaces, with_spaces

ROWS, STEPS, FEATURES, UNITS = 3, 5, 4, 2


def spaces_of(layer: Lstm | Gru) -> Spaces:
    state = Input(name="state", shape=(layer.state_size,))
    return {
        "step": {"x": Input(name="x", shape=(FEATURES,)), "state": state},
        "sequence": {
            "x": Input(name="x", shape=(STEPS, FEATURES)),
            "first": Input(name="first", dtype="|u1", shape=(STEPS,), low=0, high=2),
            "state": state,
        },
    }


def torch_layer(kind: str) -> tuple[Any, dict[str, np.ndarray]]:
    """A layer of torch with random weights, and the same weights for ours."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    theirs = (torch.nn.LSTM if kind == "lstm" else torch.nn.GRU)(FEATURES, UNITS, batch_first=True)
    given = {name: value.detach().numpy() for name, value in theirs.named_parameters()}
    parameters = {"weight": given["weight_ih_l0"].T, "hidden_weight": given["weight_hh_l0"].T}
    bias, hidden_bias = given["bias_ih_l0"].copy(), given["bias_hh_l0"]
    if kind == "lstm":
        return theirs, {**parameters, "bias": bias + hidden_bias}
    bias[: 2 * UNITS] += hidden_bias[: 2 * UNITS]
    return theirs, {**parameters, "bias": bias, "hidden_bias": hidden_bias[2 * UNITS :]}


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_sequence_gives_torchs_numbers(run: Callable[..., Any], generator: np.random.Generator, kind: str) -> None:
    torch = pytest.importorskip("torch")
    theirs, parameters = torch_layer(kind)
    ours = Lstm(units=UNITS) if kind == "lstm" else Gru(units=UNITS)
    x = generator.normal(size=(ROWS, STEPS, FEATURES)).astype(np.float32)
    state = generator.normal(size=(ROWS, ours.state_size)).astype(np.float32)
    parts = [torch.from_numpy(state[None, :, start : start + UNITS].copy()) for start in range(0, ours.state_size, UNITS)]
    with torch.no_grad():
        expected, last = theirs(torch.from_numpy(x), tuple(parts) if kind == "lstm" else parts[0])
    y, new = run(ours, x, np.zeros((ROWS, STEPS), np.float32), state, parameters=parameters, api="sequence")
    np.testing.assert_allclose(y, expected.numpy(), atol=1e-6)
    np.testing.assert_allclose(new, torch.cat(last, -1)[0].numpy() if kind == "lstm" else last[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("layer", [Lstm(units=UNITS), Gru(units=UNITS)])
def test_steps_one_by_one_are_the_sequence_and_episodes_begin_with_nothing(
    run: Callable[..., Any], generator: np.random.Generator, layer: Lstm | Gru
) -> None:
    _, parameters = torch_layer("lstm" if isinstance(layer, Lstm) else "gru")
    x = generator.normal(size=(ROWS, STEPS, FEATURES)).astype(np.float32)
    state = generator.normal(size=(ROWS, layer.state_size)).astype(np.float32)
    first = np.zeros((ROWS, STEPS), np.bool_)
    first[1, 2] = first[2, 0] = True
    whole = run(layer, x, first, state, parameters=parameters, api="sequence")
    for t in range(STEPS):
        state = np.where(first[:, t, None], np.float32(0), state)
        y, state = run(layer, x[:, t], state, parameters=parameters, api="step")
        np.testing.assert_allclose(whole.output[:, t], y, atol=1e-6)
    np.testing.assert_allclose(whole.state, state, atol=1e-6)


@pytest.mark.parametrize("layer", [Lstm(units=UNITS), Gru(units=UNITS)])
def test_all_modes_agree(layer: Lstm | Gru) -> None:
    component_test(layer, spaces_of(layer))


def test_an_lstm_starts_with_orthogonal_gates_and_remembers() -> None:
    layout = declare(with_spaces(Lstm(units=4), spaces_of(Lstm(units=4)))).layout
    first = layout.split(layout.init(0))
    assert first["bias"].tolist() == [0.0] * 4 + [1.0] * 4 + [0.0] * 8
    for gate in range(4):
        block = first["hidden_weight"][:, 4 * gate : 4 * gate + 4]
        np.testing.assert_allclose(block @ block.T, np.eye(4), atol=1e-5)
