"""The gradient of an API by the tape."""

from __future__ import annotations

import numpy as np

from rollstream.graph import declare
from rollstream.graph.backends.numpy_api_gradient import api_gradient
from rollstream.graph.components import Dense
from rollstream.graph.inputs import Input
from rollstream.graph.memory import Memory
from rollstream.graph.spaced import with_spaces


def test_the_gradient_of_a_dense_layer_worked_by_hand() -> None:
    """y = x w + b with cotangent c: of w it is the sum of x c over rows, of b the sum of c."""
    layer = with_spaces(Dense(features=1), {"output": {"x": Input(name="x", shape=(2,))}})
    layout = declare(layer).layout
    assert layout.names == ("weight", "bias")
    found = api_gradient(
        layer,
        api="output",
        memory=Memory(layout=layout, flat=np.array([5.0, 6.0, 7.0], np.float32)),
        inputs={"x": np.array([[1, 2], [3, 4]], np.float32)},
        cotangents={"output": np.array([[1], [10]], np.float32)},
    )
    assert found.tolist() == [31.0, 42.0, 11.0]
