"""The deep residual network of IMPALA: from an image to features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from rollstream.graph.components.conv import Conv
from rollstream.graph.components.dense import Dense
from rollstream.graph.components.max_pool import MaxPool
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

__all__ = ["Impala"]


@dataclass(frozen=True, kw_only=True)
class Impala:
    """Per section: a 3x3 convolution, 3x3 max pooling with stride 2, two residual blocks; at the end relu and a dense layer with
    relu (Espeholt et al. 2018, arXiv 1802.01561, figure 3 right).

    Attributes:
        sections: channels of each section.
        units: width of the dense layer.
    """

    sections: tuple[int, ...] = (16, 32, 32)
    units: int = 256

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        """[B, C, H, W] -> [B, units]."""
        for number, section in enumerate(self._sections):
            x = section.output(scope.child(f"section{number}"), x)
        flat = scope.ops.relu(scope.ops.reshape(x, (x.shape[0], math.prod(x.shape[1:]))))
        return Dense(features=self.units, activation="relu").output(scope.child("dense"), flat)

    def fits(self, height: int, width: int) -> bool:
        """Whether an image of this size leaves something for every layer to look at: any does, since all padding is `same`."""
        return min(height, width) >= 1

    @cached_property
    def _sections(self) -> tuple[_Section, ...]:
        return tuple(_Section(channels=channels) for channels in self.sections)


@dataclass(frozen=True, kw_only=True)
class _Section:
    channels: int

    @cached_property
    def _conv(self) -> Conv:
        return Conv(features=self.channels, kernel=3, padding="same")

    @api
    def output(self, scope: Scope, x: Array) -> Array:
        x = self._conv.output(scope.child("conv"), x)
        x = MaxPool(kernel=3, stride=2, padding="same").output(scope.child("pool"), x)
        for block in range(2):
            change = x
            for layer in range(2):
                change = self._conv.output(scope.child(f"block{block}_{layer}"), scope.ops.relu(change))
            x = x + change
        return x
