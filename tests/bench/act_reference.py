"""What acting in NumPy costs when it is written by hand: the measure of `Acting.act`, which may take 1.3 times as long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["ActReference", "Layer"]

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A dense layer: weight [F, G], bias [G]."""

    weight: Floats
    bias: Floats


class ActReference:
    """Tanh layers, a policy head over A actions and a value head on the same features, for a fixed number of rows.

    As a programmer would write it who knows the shapes: buffers made once, `out=` everywhere, actions by inversion of one uniform
    number for each row, log-probabilities with the maximum subtracted.
    """

    def __init__(self, hidden: Sequence[Layer], policy: Layer, value: Layer, *, batch: int) -> None:
        def rows(layer: Layer) -> Floats:
            return np.empty((batch, layer.weight.shape[1]), np.float32)

        self._hidden = [(layer.weight, layer.bias, rows(layer)) for layer in hidden]
        self._policy, self._value = (policy.weight, policy.bias), (value.weight, value.bias)
        self._observation = np.zeros((batch, hidden[0].weight.shape[0]), np.float32)
        self._noise = np.zeros((batch, 1), np.float32)
        self._logits, self._probs, self._values = rows(policy), rows(policy), rows(value)
        self._column, self._total = np.empty((batch, 1), np.float32), np.empty((batch, 1), np.float32)
        self._below = np.empty((batch, policy.weight.shape[1] - 1), np.bool_)
        self._action, self._log_prob = np.empty(batch, np.int64), np.empty(batch, np.float32)
        self._starts = np.arange(batch, dtype=np.int64) * policy.weight.shape[1]
        self._places = np.empty(batch, np.int64)

    def forward(self) -> None:
        """From what lies in the buffers of observation and noise to action, log-probability and value."""
        x = self._observation
        for weight, bias, out in self._hidden:
            np.dot(x, weight, out)
            np.add(out, bias, out)
            x = np.tanh(out, out)
        logits, probs, column, total = self._logits, self._probs, self._column, self._total
        np.add(np.dot(x, self._policy[0], logits), self._policy[1], logits)
        np.add(np.dot(x, self._value[0], self._values), self._value[1], self._values)
        np.maximum.reduce(logits, 1, None, column, True)
        np.subtract(logits, column, logits)
        np.exp(logits, probs)
        np.add.accumulate(probs, 1, None, probs)
        np.multiply(probs[:, -1:], self._noise, total)
        np.less_equal(probs[:, :-1], total, self._below)
        np.add.reduce(self._below, 1, None, self._action)
        np.log(probs[:, -1:], column)
        np.subtract(logits, column, logits)
        np.add(self._starts, self._action, self._places)
        logits.take(self._places, None, self._log_prob, "clip")

    def act(self, observation: Floats, generator: np.random.Generator) -> dict[str, npt.NDArray[np.generic]]:
        """As `Acting.act`: arrays of its own for the caller to keep."""
        self._observation[...] = observation
        generator.random(dtype=np.float32, out=self._noise)
        self.forward()
        return {"action": self._action.copy(), "log_prob": self._log_prob.copy(), "value": self._values[:, 0].copy()}
