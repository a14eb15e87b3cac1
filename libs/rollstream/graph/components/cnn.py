"""From an image to features: convolutions, then one dense layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rollstream.graph.components.conv import Conv, windows
from rollstream.graph.components.dense import Dense
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["ATARI", "NATURE", "Cnn"]


@dataclass(frozen=True, kw_only=True)
class Cnn:
    """Convolutions in order, then a dense layer with relu.

    Attributes:
        units: width of the dense layer.
    """

    layers: tuple[Conv, ...]
    units: int

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, C, H, W] -> [B, units]."""
        for number, layer in enumerate(self.layers):
            x = layer.output(scope.child(f"conv{number}"), x)
        flat = scope.ops.reshape(x, (x.shape[0], math.prod(x.shape[1:])))
        return Dense(features=self.units, activation="relu").output(scope.child("dense"), flat)

    def fits(self, height: int, width: int) -> bool:
        """Whether an image of this size leaves something for every layer to look at."""
        for layer in self.layers:
            height, width = (
                windows(size, kernel=layer.kernel, stride=layer.stride, padding=layer.padding) for size in (height, width)
            )
            if min(height, width) < 1:
                return False
        return True


def _relu(features: int, kernel: int, stride: int) -> Conv:
    return Conv(features=features, kernel=kernel, stride=stride, activation="relu")


ATARI = Cnn(layers=(_relu(16, 8, 4), _relu(32, 4, 2)), units=256)
"""Mnih et al. 2013 (arXiv 1312.5602, section 5.1): small and quick on a CPU."""

NATURE = Cnn(layers=(_relu(32, 8, 4), _relu(64, 4, 2), _relu(64, 3, 1)), units=512)
"""Mnih et al. 2015 (doi 10.1038/nature14236, Methods)."""
