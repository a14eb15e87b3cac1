"""Parts in every mode, also those that compile, against plain NumPy, and gradients against finite differences.

Unit tests do the same for each part alone in the modes that build in well under a second, with numbers worked by hand beside it. Compiling
takes seconds, so here one network has everything in it: preprocessing with statistics, convolutions, dense layers, memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("torch")

from gymnasium import spaces

from rollstream.graph.component_test import component_test
from rollstream.graph.components import Preprocessing, Remembered, Torso, parse_chains
from rollstream.graph.inputs import Argument, Arguments, Input, columns_of
from rollstream.graph.modes.executables import MODES
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import leaves

STEPS = 3
CAMERA = leaves(spaces.Dict(camera=spaces.Box(0, 255, (40, 44, 3), np.uint8), gear=spaces.Discrete(3, start=-1)), "observation")
CHAINS = parse_chains(
    {
        "observation.camera": [
            "grayscale",
            {"kind": "resize", "height": 20, "width": 22},
            "normalize",
            {"kind": "crop", "height": 20, "width": 21},
        ]
    }
)


@dataclass(frozen=True)
class Network:
    """Preprocessing and a torso with convolutions and memory, over a few steps."""

    preprocessing: Preprocessing
    torso: Torso
    apis: ClassVar[tuple[str, ...]] = ("sequence", "observe")

    def arguments(self, api: str) -> Arguments:
        columns = columns_of(self.preprocessing.observation)
        if api == "observe":
            return {"observation": columns, "weight": Input(name="weight", low=0.0)}
        over_time: Argument = tuple(
            Input(name=item.name, dtype=item.dtype, shape=(STEPS, *item.shape), low=item.low, high=item.high) for item in columns
        )
        first = Input(name="first", dtype="|u1", shape=(STEPS,), low=0, high=2)
        return {"observation": over_time, "first": first, "state": Input(name="state", shape=(self.torso.state_size,))}

    @api
    def sequence(self, scope: Scope, *, observation: Mapping[str, Array], first: Array, state: Array) -> Remembered:
        seen = self.preprocessing.output(scope.child("preprocessing"), observation)
        return self.torso.sequence(scope.child("torso"), seen, first, state)

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> None:
        self.preprocessing.observe(scope.child("preprocessing"), observation, weight)


@pytest.mark.parametrize("mode", MODES)
def test_a_network_with_everything_in_it(mode: Any) -> None:
    preprocessing = Preprocessing(CAMERA, chains=CHAINS)
    torso = Torso(
        preprocessing.output_leaves,
        hidden=(8,),
        activation="elu",
        layer_norm=True,
        convolutions="atari",
        recurrent="lstm",
        recurrent_units=4,
    )
    compared = component_test(Network(preprocessing, torso), modes=[mode], rows=2)
    assert {(item.api, item.mode) for item in compared} >= {("sequence", mode), ("sequence", "gradient"), ("observe", mode)}
