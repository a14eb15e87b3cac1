"""Acting in NumPy and in torch, from the same weights and the same noise."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.graph import CategoricalPolicy, QPolicy, build_acting
from rollstream.graph.inputs import columns_of, sample
from rollstream.spaces import Leaf

ROWS = 64


@pytest.mark.parametrize("kind", ["categorical", "epsilon-greedy"])
def test_numpy_and_torch_act_alike(observation: tuple[Leaf, ...], action: Leaf, kind: str) -> None:
    policy = CategoricalPolicy(observation, action) if kind == "categorical" else QPolicy(observation, action)
    settings = {} if kind == "categorical" else {"epsilon": 0.3}
    by_numpy, by_torch = build_acting(policy, batch=ROWS), build_acting(policy, batch=ROWS, mode="torch")
    generator = np.random.default_rng(0)
    weights = by_numpy.layout.init(0) + generator.normal(0, 0.05, by_numpy.layout.size).astype(np.float32)
    for acting in (by_numpy, by_torch):
        acting.load(weights)
    for seed in range(3):
        columns = sample({"observation": columns_of(observation)}, rows=ROWS, generator=generator)
        one, other = (acting.act(columns, np.random.default_rng(seed), **settings) for acting in (by_numpy, by_torch))
        assert one.keys() == other.keys()
        for name, column in one.items():
            assert column.dtype == other[name].dtype
            np.testing.assert_allclose(column, other[name], atol=1e-5)
        np.testing.assert_array_equal(by_numpy.greedy(columns)["action"], by_torch.greedy(columns)["action"])
