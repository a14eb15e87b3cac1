"""Clipping by the global norm."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.optimizers import clip_scale


@pytest.mark.parametrize(("norm", "scale"), [(2.0, 0.25), (0.5, 1.0), (0.1, 1.0), (0.0, 1.0)])
def test_only_larger_gradients_are_scaled(norm: float, scale: float) -> None:
    assert clip_scale(NumpyOps(), np.float32(norm), max_norm=0.5) == pytest.approx(scale, rel=1e-5)
