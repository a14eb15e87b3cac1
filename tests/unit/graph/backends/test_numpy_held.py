"""The op table for finite differences."""

from __future__ import annotations

import numpy as np

from rollstream.graph.backends.numpy_held import HeldOps


def test_what_no_gradient_flows_through_stays_as_it_was_in_the_first_run() -> None:
    ops = HeldOps()
    assert [ops.stop_gradient(np.array(value)) for value in (1.0, 2.0)] == [1.0, 2.0]
    for _ in range(2):
        ops.again()
        assert [ops.stop_gradient(np.array(value)) for value in (5.0, 6.0)] == [1.0, 2.0]
