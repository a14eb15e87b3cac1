"""Returns and advantages against the sums that define them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.graph import gae, n_step_return
from rollstream.graph.backends.numpy_ops import NumpyOps


def _series(seed: int, length: int) -> dict[str, np.ndarray]:
    """A run of episodes that end by termination or truncation."""
    generator = np.random.default_rng(seed)
    ended, terminated = generator.random((2, length)) < 0.3
    return {
        "reward": generator.normal(size=length),
        "discount": np.where(ended & terminated, 0.0, 0.9),
        "value": generator.normal(size=length),
        "next_value": generator.normal(size=length),
        "continues": np.where(ended, 0.0, 1.0),
    }


@given(seed=st.integers(0, 10_000), length=st.integers(1, 12), gae_lambda=st.sampled_from([0.0, 0.5, 0.95, 1.0]))
@settings(deadline=None, max_examples=60)
def test_gae_is_the_sum_of_discounted_errors_up_to_the_end_of_the_episode(seed: int, length: int, gae_lambda: float) -> None:
    run = _series(seed, length)
    found = gae(
        NumpyOps(), run["reward"], run["discount"], run["value"], run["next_value"], run["continues"], gae_lambda=gae_lambda
    )
    error = run["reward"] + run["discount"] * run["next_value"] - run["value"]
    for t in range(length):
        expected, factor = 0.0, 1.0
        for k in range(t, length):
            expected += factor * error[k]
            factor *= run["discount"][k] * gae_lambda * run["continues"][k]
        np.testing.assert_allclose(found[t], expected, atol=1e-9)


@given(seed=st.integers(0, 10_000), length=st.integers(1, 12), steps=st.integers(1, 15))
@settings(deadline=None, max_examples=60)
def test_an_n_step_return_is_the_sum_of_discounted_rewards_and_the_last_value(seed: int, length: int, steps: int) -> None:
    run = _series(seed, length)
    found = n_step_return(NumpyOps(), run["reward"], run["discount"], run["next_value"], steps=steps)
    for t in range(length):
        last = min(t + steps, length) - 1
        expected, factor = 0.0, 1.0
        for k in range(t, last + 1):
            expected += factor * run["reward"][k]
            factor *= run["discount"][k]
        np.testing.assert_allclose(found[t], expected + factor * run["next_value"][last], atol=1e-9)
