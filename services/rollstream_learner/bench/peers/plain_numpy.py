"""The forward pass of the MLP written by hand in NumPy, with buffers made once: as fast as NumPy gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.seeding import child_generator

__all__ = ["PlainNumpyActing"]

WIDTHS = ((8, 64), (64, 64), (64, 4), (64, 1))


class PlainNumpyActing:
    """Draws actions from a 2x64 tanh network; returns action, log-probability and value, the caller's to keep."""

    def __init__(self, rows: int) -> None:
        generator = child_generator(0, "bench", "plain")
        self._weights = [generator.standard_normal(shape).astype(np.float32) * 0.1 for shape in WIDTHS]
        self._biases = [np.zeros(shape[1], np.float32) for shape in WIDTHS]
        self._buffers = [np.zeros((rows, shape[1]), np.float32) for shape in WIDTHS]
        self._input = np.zeros((rows, WIDTHS[0][0]), np.float32)
        self._noise = np.zeros(rows, np.float32)
        self._top = np.zeros((rows, 1), np.float32)
        self._exp = np.zeros((rows, 4), np.float32)
        self._sum = np.zeros((rows, 1), np.float32)
        self._passed = np.zeros((rows, 3), np.bool_)
        self._action = np.zeros(rows, np.int64)
        self._starts = np.arange(rows) * 4
        self._place = np.zeros(rows, np.int64)
        self._log_prob = np.zeros(rows, np.float32)
        self._generator = generator

    def act(self, observation: npt.NDArray[np.float32]) -> dict[str, npt.NDArray[Any]]:
        """Columns [N] of a batch of observations [N, 8]."""
        np.copyto(self._input, observation)
        self._generator.random(dtype=np.float32, out=self._noise)
        x = self._input
        for layer in (0, 1):
            out = self._buffers[layer]
            np.dot(x, self._weights[layer], out)
            np.add(out, self._biases[layer], out)
            x = np.tanh(out, out)
        logits, value = self._buffers[2], self._buffers[3]
        np.add(np.dot(x, self._weights[2], logits), self._biases[2], logits)
        np.add(np.dot(x, self._weights[3], value), self._biases[3], value)
        np.maximum.reduce(logits, axis=1, out=self._top, keepdims=True)
        np.subtract(logits, self._top, logits)
        np.add.reduce(np.exp(logits, self._exp), axis=1, out=self._sum, keepdims=True)
        np.subtract(logits, np.log(self._sum, self._sum), logits)
        np.exp(logits, self._exp)
        np.add.accumulate(self._exp, 1, None, self._exp)
        np.less_equal(self._exp[:, :3], self._noise[:, None], self._passed)
        np.add.reduce(self._passed, axis=1, out=self._action)
        np.add(self._starts, self._action, self._place)
        logits.reshape(-1).take(self._place, 0, self._log_prob, "clip")
        return {"action": self._action.copy(), "log_prob": self._log_prob.copy(), "value": value[:, 0].copy()}
