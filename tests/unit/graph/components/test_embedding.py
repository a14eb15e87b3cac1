"""Vectors for choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Embedding


def test_each_choice_has_its_row_counted_from_the_start(run: Callable[..., Any]) -> None:
    table = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    choice = np.array([[-1, 1], [0, 0]])
    y = run(Embedding(count=3, features=2, start=-1), choice, parameters={"table": table})
    assert y.tolist() == [[[0.0, 1.0], [4.0, 5.0]], [[2.0, 3.0], [2.0, 3.0]]]


def test_all_modes_agree() -> None:
    component_test(Embedding(count=4, features=3, start=2), {"output": {"choice": spaces.Discrete(4, start=2)}})


def test_anything_but_integers_is_refused() -> None:
    needs = r"\(root\): Embedding.output, argument choice: needs integers .a Discrete space., got float32"
    with pytest.raises(SpaceError, match=needs):
        build(Embedding(count=4, features=3), {"output": {"choice": spaces.Box(-1, 1, (2,))}})
