"""Acting in every mode, from the same weights and the same noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rollstream.graph import ActorCriticPolicy, QPolicy, build_acting
from rollstream.graph.inputs import columns_of, sample
from rollstream.graph.modes.executables import MODES
from rollstream.spaces import Leaf

ROWS = 64


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "numpy"])
@pytest.mark.parametrize("kind", ["categorical", "epsilon-greedy"])
def test_all_modes_act_as_numpy_does(observation: tuple[Leaf, ...], action: Leaf, kind: str, mode: Any) -> None:
    for library in {"torch": ("torch",), "onnx": ("onnx", "onnxruntime"), "jax": ("jax",)}[mode.split("-")[0]]:
        pytest.importorskip(library)
    policy = ActorCriticPolicy(observation, (action,)) if kind == "categorical" else QPolicy(observation, (action,))
    settings = {} if kind == "categorical" else {"epsilon": 0.3}
    by_numpy, by_other = (build_acting(policy, batch=ROWS, mode=name) for name in ("numpy", mode))
    generator = np.random.default_rng(0)
    weights = by_numpy.layout.init(0) + generator.normal(0, 0.05, by_numpy.layout.size).astype(np.float32)
    for acting in (by_numpy, by_other):
        acting.load(weights)
    for seed in range(3):
        columns = sample({"observation": columns_of(observation)}, rows=ROWS, generator=generator)
        one, other = (acting.act(columns, np.random.default_rng(seed), **settings) for acting in (by_numpy, by_other))
        assert one.keys() == other.keys()
        for name, column in one.items():
            assert column.dtype == other[name].dtype
            np.testing.assert_allclose(column, other[name], atol=1e-5)
        np.testing.assert_array_equal(by_numpy.greedy(columns)["action"], by_other.greedy(columns)["action"])
