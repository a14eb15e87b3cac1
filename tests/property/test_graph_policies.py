"""Policies of any space act the same replayed, in blocks, and in the reference."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.graph import ActorCriticPolicy, QPolicy, build_acting, declare
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.discrete import index_to_value, value_to_index
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.memory import Memory
from rollstream.graph.reference import reference
from rollstream.spaces import Leaf


@st.composite
def observations(draw: st.DrawFn) -> tuple[Leaf, ...]:
    leaves = []
    for number in range(draw(st.integers(1, 3))):
        name = f"observation.{number}"
        kind = draw(st.sampled_from(["box", "discrete", "multi_discrete", "multi_binary"]))
        shape = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
        size = int(np.prod(shape, dtype=int))
        if kind == "box":
            dtype = draw(st.sampled_from(["<f4", "<f8", "|u1"]))
            leaves.append(Leaf(name=name, kind="box", dtype=dtype, shape=shape, low=(0.0,) * size, high=(1.0,) * size))
        elif kind == "multi_binary":
            leaves.append(Leaf(name=name, kind="multi_binary", dtype="|i1", shape=shape or (2,)))
        else:
            shape, size = ((), 1) if kind == "discrete" else (shape or (1,), max(size, 1))
            counts = tuple(draw(st.integers(1, 4)) for _ in range(size))
            starts = (draw(st.integers(-3, 3)),) * size
            kinds = {"discrete": "discrete", "multi_discrete": "multi_discrete"}
            leaves.append(
                Leaf(name=name, kind=kinds[kind], dtype="<i8", shape=shape, counts=counts, starts=starts)  # type: ignore[arg-type]
            )
    return tuple(leaves)


@given(observation=observations(), choices=st.integers(1, 5), rows=st.integers(1, 9), seed=st.integers(0, 999))
@settings(deadline=None, max_examples=40)
def test_the_acting_path_gives_what_the_reference_gives(
    observation: tuple[Leaf, ...], choices: int, rows: int, seed: int
) -> None:
    action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(choices,), starts=(0,))
    for policy in (
        ActorCriticPolicy(observation, (action,), hidden=(5,)),
        QPolicy(observation, (action,), hidden=(5,), dueling=True),
    ):
        generator = np.random.default_rng(seed)
        acting = build_acting(policy, batch=rows)
        flat = acting.layout.init(seed) + generator.normal(0, 0.2, acting.layout.size).astype(np.float32)
        acting.load(flat)
        inputs = sample(policy.arguments("act"), rows=rows, generator=generator)
        columns = {leaf.name: inputs[leaf.name] for leaf in observation}
        settings_ = {name: inputs[name] for name in ("epsilon",) if name in inputs}
        (noise,) = (item.name for item in flat_inputs(policy.arguments("act")) if item.role == "noise")
        inputs[noise] = np.random.default_rng(1).random(inputs[noise].shape, np.float32)
        found = acting.act(columns, np.random.default_rng(1), **settings_)
        expected = reference(policy, api="act", memory=Memory(layout=acting.layout, flat=flat), inputs=inputs)
        for name, column in expected.items():
            np.testing.assert_array_equal(found[name], column)
        greedy = reference(policy, api="greedy", memory=Memory(layout=acting.layout, flat=flat), inputs=columns)["action"]
        np.testing.assert_array_equal(acting.greedy(columns)["action"], greedy)


@given(start=st.integers(-5, 5), choices=st.integers(1, 9))
def test_values_and_indices_of_actions_are_inverse(start: int, choices: int) -> None:
    leaf = Leaf(name="action", kind="discrete", dtype="<i4", shape=(), counts=(choices,), starts=(start,))
    index = np.arange(choices)
    values = index_to_value(leaf, index)
    assert values.min() == start
    np.testing.assert_array_equal(value_to_index(NumpyOps(), leaf, values), index)


@given(widths=st.lists(st.integers(1, 6), max_size=3), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_a_flat_vector_is_the_join_of_its_parts(widths: list[int], seed: int) -> None:
    box = Leaf(name="observation", kind="box", dtype="<f4", shape=(2,), low=(0.0,) * 2, high=(1.0,) * 2)
    action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
    layout = declare(ActorCriticPolicy((box,), (action,), hidden=tuple(widths), shared_torso=False)).layout
    flat = layout.init(seed)
    np.testing.assert_array_equal(layout.join(layout.split(flat)), flat)
