"""Chains of preprocessing, from settings to leaves and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph import build
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Preprocessing, parse_chains
from rollstream.graph.inputs import Input, columns_of
from rollstream.graph.spaced import Spaces
from rollstream.spaces import Leaf

CHAINS = {
    "observation.image": ["grayscale", {"kind": "resize", "height": 4, "width": 3}, {"kind": "scale", "factor": 1 / 255}],
    "observation.mode": ["one_hot", {"kind": "scale", "factor": 2.0, "offset": -1.0}],
    "observation.speed": [{"kind": "clip", "low": -0.5, "high": 0.5}, "normalize"],
}


def image(*shape: int) -> Leaf:
    size = int(np.prod(shape))
    return Leaf(name="observation.image", kind="box", dtype="|u1", shape=shape, low=(0.0,) * size, high=(255.0,) * size)


@pytest.fixture
def observation(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> tuple[Leaf, ...]:
    return (
        image(8, 9, 3),
        discrete(3, start=-1, name="observation.mode"),
        box(2, name="observation.speed"),
        box(1, name="observation.rest", dtype="<f8"),
    )


def spaces(observation: tuple[Leaf, ...]) -> Spaces:
    columns = columns_of(observation)
    return {
        "output": {"observation": columns},
        "observe": {"observation": columns, "weight": Input(name="weight", low=0.0, high=1.0)},
    }


def made(observation: tuple[Leaf, ...], chains: Mapping[str, Any], **settings: Any) -> Preprocessing:
    return Preprocessing(observation, chains=parse_chains(chains), **settings)


def test_leaves_say_what_comes_out(observation: tuple[Leaf, ...]) -> None:
    found = {leaf.name: leaf for leaf in made(observation, CHAINS).output_leaves}
    assert [found[leaf.name].shape for leaf in observation] == [(4, 3, 1), (3,), (2,), (1,)]
    assert (found["observation.image"].low[0], found["observation.image"].high[-1]) == (0.0, 1.0)
    assert (found["observation.mode"].low[0], found["observation.mode"].high[0]) == (-1.0, 1.0)
    assert (found["observation.speed"].low, found["observation.speed"].dtype) == ((-10.0, -10.0), "<f4")
    assert found["observation.rest"] == observation[-1]


def test_each_leaf_goes_through_its_chain(observation: tuple[Leaf, ...]) -> None:
    built = build(made(observation, CHAINS), spaces(observation), rows=1)
    picture = np.zeros((1, 8, 9, 3), np.uint8)
    picture[:, :2, :3] = 255  # exactly what the first of 4 x 3 new pixels covers
    columns = {
        "observation.image": picture,
        "observation.mode": np.array([1]),
        "observation.speed": np.array([[0.25, 3.0]], np.float32),
        "observation.rest": np.array([[0.125]]),
    }
    found = built("output", **columns)
    assert found["observation.image"][0, :, :, 0].ravel() == pytest.approx([1.0] + [0.0] * 11, abs=1e-6)
    assert found["observation.mode"].tolist() == [[-1.0, -1.0, 1.0]]
    assert found["observation.speed"].tolist() == [[0.25, 0.5]]
    assert found["observation.rest"].tolist() == [[0.125]]
    built("observe", **columns, weight=np.ones(1, np.float32))
    assert built.memory.state_views["observation.speed.1.mean"].tolist() == [0.25, 0.5]  # of what was clipped


def test_all_modes_agree(observation: tuple[Leaf, ...]) -> None:
    component_test(made(observation, CHAINS), spaces(observation))


def test_a_sequence_is_preprocessed_as_its_steps_are(observation: tuple[Leaf, ...]) -> None:
    preprocessing, generator = made(observation, CHAINS), np.random.default_rng(0)
    over_time = tuple(
        Input(name=item.name, dtype=item.dtype, shape=(5, *item.shape), low=item.low, high=item.high)
        for item in columns_of(observation)
    )
    rows = {
        item.name: generator.integers(int(item.low), int(item.high), (2, *item.shape)).astype(item.dtype)
        if np.dtype(item.dtype).kind in "iu"
        else generator.uniform(-1, 1, (2, *item.shape)).astype(item.dtype)
        for item in over_time
    }
    whole = build(preprocessing, {"output": {"observation": over_time}}, rows=2)("output", **rows)
    single = build(preprocessing, {"output": {"observation": columns_of(observation)}}, rows=10)
    flat = single("output", **{name: x.reshape(10, *x.shape[2:]) for name, x in rows.items()})
    for name, column in whole.items():
        np.testing.assert_allclose(column.reshape(flat[name].shape), flat[name], rtol=1e-6)


def test_nothing_to_do_is_nothing_done(observation: tuple[Leaf, ...]) -> None:
    preprocessing = Preprocessing(observation)
    assert preprocessing.output_leaves == observation
    assert not preprocessing.has_state
    assert made(observation, CHAINS).has_state


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ({"observation.imag": []}, "observation.imag: preprocessing names no leaf of the observation; did you mean"),
        (
            {"observation.speed": ["grayscale"]},
            r"speed: preprocessing grayscale needs an image .a Box of three axes., got box \[2\]",
        ),
        ({"observation.image": ["grayscale", "grayscale"]}, r"grayscale needs an image of 3 channels, got 1 in \[8, 9, 1\]"),
        ({"observation.image": [{"kind": "crop", "top": 5, "height": 4, "width": 2}]}, "crop wants rows up to 9 .* has 8 x 9"),
        ({"observation.speed": [{"kind": "clip", "low": 1, "high": 0}]}, "preprocessing clip needs low <= high, got 1 and 0"),
        ({"observation.speed": ["one_hot"]}, "preprocessing one_hot needs a Discrete or MultiDiscrete space, got box"),
        (
            {"observation.mode": ["normalize"]},
            r"preprocessing normalize needs numbers, got choices .discrete.; put one_hot before",
        ),
    ],
)
def test_a_chain_that_does_not_fit_is_refused_by_name(
    observation: tuple[Leaf, ...], chains: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(SpaceError, match=message):
        made(observation, chains)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"observation": ["greyscale"]},
            "settings.preprocessing.observation.0: .*'greyscale' .* expected tags: 'grayscale', 'resize'",
        ),
        (
            {"observation": [{"kind": "resize", "width": 0}]},
            "preprocessing.observation.0.resize.height: is required; .*width: .* got 0",
        ),
        ({"observation": "normalize"}, "preprocessing.observation: Input should be a list, got 'normalize'"),
        (
            {"observation": [{"kind": "resize", "height": 100_000, "width": 84}]},
            "resize.height: Input should be less than or equal to 1024, got 100000",
        ),
        ({"observation": [{"kind": "normalize", "clip": 5}]}, "preprocessing.observation.0.normalize.clip: unknown setting"),
    ],
)
def test_settings_that_do_not_parse_are_named_with_what_is_allowed(data: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_chains(data, path="settings")
