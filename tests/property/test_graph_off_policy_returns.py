"""Returns that recur, against the sums that define them, over any length and any ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.returns import lambda_return, off_policy_n_step_return, retrace, upgo_return, vtrace

OPS = NumpyOps(dtype=np.float64)
SHARES = st.sampled_from([0.0, 0.5, 0.95, 1.0])


@dataclass(frozen=True, kw_only=True)
class Run:
    """Steps of episodes that end by termination or truncation; each next value is that of the row that follows, when one does."""

    reward: np.ndarray
    discount: np.ndarray
    value: np.ndarray
    next_value: np.ndarray
    ratio: np.ndarray
    goes_on: np.ndarray

    @staticmethod
    def drawn(seed: int, length: int) -> Run:
        generator = np.random.default_rng(seed)
        ended, terminated = generator.random((2, length)) < 0.3
        value, after = generator.normal(size=(2, length))
        goes_on = np.where(ended, 0.0, 1.0)
        following = np.append(value[1:], 0.0)
        goes_on_inside = np.append(goes_on[:-1], 0.0)
        return Run(
            reward=generator.normal(size=length),
            discount=np.where(ended & terminated, 0.0, 0.9),
            value=value,
            next_value=np.where(goes_on_inside == 1.0, following, after),
            ratio=np.exp(generator.normal(size=length)),
            goes_on=goes_on,
        )

    def last(self, t: int) -> int:
        """The last row of the episode of row t, or of the run."""
        while t + 1 < len(self.reward) and self.goes_on[t]:
            t += 1
        return t

    def error(self, k: int) -> float:
        """Of one step."""
        return float(self.reward[k] + self.discount[k] * self.next_value[k] - self.value[k])


def _each_form(function: object, run: Run, names: tuple[str, ...], **settings: float) -> np.ndarray:
    """Computed for [T], and the same for each column of [T, 2]."""
    arrays = [getattr(run, name) for name in names]
    flat = function(OPS, *arrays, **settings)  # type: ignore[operator]
    twice = function(OPS, *(np.stack([array, array], 1) for array in arrays), **settings)  # type: ignore[operator]
    np.testing.assert_allclose(twice, np.stack([flat, flat], 1))
    return np.asarray(flat)


RUNS = {"seed": st.integers(0, 10_000), "length": st.integers(1, 12)}


@given(**RUNS, lambda_=SHARES)
@settings(deadline=None, max_examples=60)
def test_a_lambda_return_is_the_weighted_mean_of_n_step_returns(seed: int, length: int, lambda_: float) -> None:
    run = Run.drawn(seed, length)
    found = _each_form(lambda_return, run, ("reward", "discount", "next_value", "goes_on"), lambda_=lambda_)
    for t in range(length):
        last, expected, reward, factor = run.last(t), 0.0, 0.0, 1.0
        for k in range(t, last + 1):
            reward += factor * run.reward[k]
            factor *= run.discount[k]
            n_step = reward + factor * run.next_value[k]
            expected += (lambda_ ** (k - t)) * (1.0 if k == last else 1.0 - lambda_) * n_step
        np.testing.assert_allclose(found[t], expected, atol=1e-9)


@given(**RUNS, lambda_=SHARES, rho=st.sampled_from([0.5, 1.0, 9.0]), c=st.sampled_from([0.5, 1.0, 9.0]))
@settings(deadline=None, max_examples=60)
def test_vtrace_is_the_sum_of_equation_1(seed: int, length: int, lambda_: float, rho: float, c: float) -> None:
    run = Run.drawn(seed, length)
    found = vtrace(
        OPS,
        run.reward,
        run.discount,
        run.value,
        run.next_value,
        run.ratio,
        run.goes_on,
        lambda_=lambda_,
        rho_clip=rho,
        c_clip=c,
    )
    target = np.zeros(length)
    for t in range(length):
        target[t], factor = run.value[t], 1.0
        for k in range(t, run.last(t) + 1):
            target[t] += factor * min(rho, run.ratio[k]) * run.error(k)
            factor *= run.discount[k] * lambda_ * min(c, run.ratio[k])
        np.testing.assert_allclose(found.target[t], target[t], atol=1e-9)
    for t in range(length):
        after = run.next_value[t] if run.last(t) == t else target[t + 1]
        expected = min(1.0, run.ratio[t]) * (run.reward[t] + run.discount[t] * after - run.value[t])
        np.testing.assert_allclose(found.advantage[t], expected, atol=1e-9)


@given(**RUNS, lambda_=SHARES)
@settings(deadline=None, max_examples=60)
def test_retrace_is_the_sum_of_equation_4(seed: int, length: int, lambda_: float) -> None:
    run = Run.drawn(seed, length)
    found = _each_form(
        retrace, run, ("reward", "discount", "value", "next_value", "ratio", "goes_on"), lambda_=lambda_
    )  # the values stand for action values here
    for t in range(length):
        expected, factor = run.value[t], 1.0
        for k in range(t, run.last(t) + 1):
            if k > t:
                factor *= run.discount[k - 1] * lambda_ * min(1.0, run.ratio[k])
            expected += factor * run.error(k)
        np.testing.assert_allclose(found[t], expected, atol=1e-9)


@given(**RUNS)
@settings(deadline=None, max_examples=60)
def test_upgo_sums_rewards_until_a_step_that_went_worse_than_expected(seed: int, length: int) -> None:
    run = Run.drawn(seed, length)
    found = _each_form(upgo_return, run, ("reward", "discount", "value", "next_value", "goes_on"))
    for t in range(length):
        k, expected, factor = t, 0.0, 1.0
        while True:
            expected += factor * run.reward[k]
            factor *= run.discount[k]
            if k == run.last(t) or run.error(k + 1) < 0.0:
                break
            k += 1
        np.testing.assert_allclose(found[t], expected + factor * run.next_value[k], atol=1e-9)


@given(**RUNS, steps=st.integers(1, 15))
@settings(deadline=None, max_examples=60)
def test_an_off_policy_n_step_return_is_the_recursion_of_equation_7_13(seed: int, length: int, steps: int) -> None:
    run = Run.drawn(seed, length)
    names = ("reward", "discount", "value", "next_value", "ratio", "goes_on")
    found = _each_form(off_policy_n_step_return, run, names, steps=steps)

    def expected(t: int, left: int) -> float:
        after = run.next_value[t] if left == 1 or run.last(t) == t else expected(t + 1, left - 1)
        taken = run.reward[t] + run.discount[t] * after
        return float(run.ratio[t] * taken + (1.0 - run.ratio[t]) * run.value[t])

    np.testing.assert_allclose(found, [expected(t, steps) for t in range(length)], atol=1e-9)


@pytest.mark.parametrize("lambda_", [0.0, 0.5, 1.0])
def test_on_policy_vtrace_and_retrace_are_lambda_returns(lambda_: float) -> None:
    for seed in range(20):
        run = Run.drawn(seed, 9)
        ones = np.ones(9)
        expected = lambda_return(OPS, run.reward, run.discount, run.next_value, run.goes_on, lambda_=lambda_)
        series = (run.reward, run.discount, run.value, run.next_value, ones, run.goes_on)
        np.testing.assert_allclose(vtrace(OPS, *series, lambda_=lambda_).target, expected)
        np.testing.assert_allclose(retrace(OPS, *series, lambda_=lambda_), expected)
