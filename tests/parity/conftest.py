"""Spaces with a leaf of every kind, for tests that compare modes."""

from __future__ import annotations

import pytest

from rollstream.spaces import Leaf


@pytest.fixture(scope="session")
def observation() -> tuple[Leaf, ...]:
    return (
        Leaf(name="observation.box", kind="box", dtype="<f8", shape=(2, 3), low=(-1.0,) * 6, high=(1.0,) * 6),
        Leaf(name="observation.image", kind="box", dtype="|u1", shape=(2, 2), low=(0.0,) * 4, high=(255.0,) * 4),
        Leaf(name="observation.mode", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,)),
        Leaf(
            name="observation.cards", kind="multi_discrete", dtype="<i8", shape=(2, 2), counts=(3, 4, 2, 5), starts=(0, 1, 1, 0)
        ),
        Leaf(name="observation.bits", kind="multi_binary", dtype="|i1", shape=(3,)),
    )


@pytest.fixture(scope="session")
def action() -> Leaf:
    return Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,))
