"""Learning rates for groups of parameters: a factor for each number of the flat vector, from patterns of parameter names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fnmatch import fnmatchcase

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.graph.layout import FlatLayout

__all__ = ["rate_scale"]


def rate_scale(layout: FlatLayout, groups: Mapping[str, float]) -> npt.NDArray[np.float32]:
    """Factor of the learning rate for each parameter, float32 [P]: that of the first pattern that fits its name, else 1.

        rate_scale(layout, {"value.*": 2.0, "torso.*": 0.0})       # twice as fast; not at all

    Weight decay scales with the learning rate, as in parameter groups of torch.

    Args:
        groups: factors by pattern; `*` stands for any text.

    Raises:
        ConfigError: a factor is negative or not finite; or a pattern fits no parameter (the message names them all).
    """
    factors = dict.fromkeys(layout.names, 1.0)
    for pattern, factor in reversed(list(groups.items())):
        if not (math.isfinite(factor) and factor >= 0.0):
            raise ConfigError(f"the learning rate's factor of {pattern!r} must be finite and >= 0, got {factor}")
        fitting = [name for name in layout.names if fnmatchcase(name, pattern)]
        if not fitting:
            raise ConfigError(f"the pattern {pattern!r} fits no parameter; there are {', '.join(layout.names)}")
        factors.update(dict.fromkeys(fitting, factor))
    return np.concatenate([np.full(item.size, factors[item.name], np.float32) for item in layout.parameters])
