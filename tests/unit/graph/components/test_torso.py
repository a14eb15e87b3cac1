"""The torso takes every observation space."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from rollstream.errors import ConfigError, SpaceError
from rollstream.graph import build, declare
from rollstream.graph.component_test import component_test
from rollstream.graph.components import Torso
from rollstream.graph.inputs import Input, columns_of
from rollstream.graph.spaced import Spaces, with_spaces
from rollstream.spaces import Leaf

Leaves = tuple[Leaf, ...]


def image(*shape: int, name: str = "observation.image", high: float = 255.0, dtype: str = "|u1") -> Leaf:
    size = int(np.prod(shape))
    return Leaf(name=name, kind="box", dtype=dtype, shape=shape, low=(0.0,) * size, high=(high,) * size)


@pytest.fixture
def nested(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> Leaves:
    mask = Leaf(name="observation.action_mask", kind="multi_binary", dtype="|i1", shape=(5,))
    return (image(36, 40, 3), box(2, name="observation.speed"), discrete(3, start=-1, name="observation.mode"), mask)


def output_spaces(observation: Leaves) -> Spaces:
    return {"output": {"observation": columns_of(observation)}}


def shapes_of(torso: Torso, observation: Leaves) -> dict[str, tuple[int, ...]]:
    layout = declare(with_spaces(torso, output_spaces(observation))).layout
    return dict(zip(layout.names, layout.shapes, strict=True))


def sequence_spaces(observation: Leaves, *, steps: int, state_size: int) -> Spaces:
    state = Input(name="state", shape=(state_size,))
    over_time = tuple(
        Input(name=item.name, dtype=item.dtype, shape=(steps, *item.shape), low=item.low, high=item.high)
        for item in columns_of(observation)
    )
    first = Input(name="first", dtype="|u1", shape=(steps,), low=0, high=2)
    return {
        "step": {"observation": columns_of(observation), "state": state},
        "sequence": {"observation": over_time, "first": first, "state": state},
    }


def test_a_vector_goes_through_the_dense_layers_as_it_always_did(box: Callable[..., Leaf]) -> None:
    assert shapes_of(Torso((box(4),), hidden=(8, 6)), (box(4),)) == {
        "0.weight": (4, 8),
        "0.bias": (8,),
        "1.weight": (8, 6),
        "1.bias": (6,),
    }


def test_images_features_and_masks_each_take_their_way(nested: Leaves) -> None:
    torso = Torso(nested, hidden=(8,), convolutions="atari")
    shapes = shapes_of(torso, nested)
    assert shapes["observation.image.conv0.weight"] == (16, 3, 8, 8)
    # rows: (36 - 8) // 4 + 1 = 8, (8 - 4) // 2 + 1 = 3; columns: (40 - 8) // 4 + 1 = 9, (9 - 4) // 2 + 1 = 3
    assert shapes["observation.image.dense.weight"] == (32 * 3 * 3, 256)
    assert shapes["0.weight"] == (256 + 2 + 3, 8)


def test_an_image_of_bytes_is_scaled_and_one_of_floats_is_not() -> None:
    bright = np.full((1, 36, 36, 1), 255, np.uint8)
    found = []
    for leaf, x in ((image(36, 36, 1), bright), (image(36, 36, 1, high=1.0, dtype="<f4"), np.ones((1, 36, 36, 1), np.float32))):
        built = build(Torso((leaf,), convolutions="atari", hidden=()), output_spaces((leaf,)))
        found.append(built("output", **{leaf.name: x})["output"])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
    assert found[0].any()


@pytest.mark.parametrize("convolutions", [None, "atari"])
def test_all_modes_agree(nested: Leaves, convolutions: str | None) -> None:
    torso = Torso(nested, hidden=(8,), convolutions=convolutions, layer_norm=True)  # type: ignore[arg-type]
    component_test(torso, output_spaces(nested), rows=2)


@pytest.mark.parametrize("recurrent", ["lstm", "gru"])
def test_all_modes_agree_on_a_recurrent_torso(box: Callable[..., Leaf], discrete: Callable[..., Leaf], recurrent: str) -> None:
    observation = (box(2, name="observation.speed"), discrete(3, start=-1, name="observation.mode"))
    torso = Torso(observation, hidden=(4,), recurrent=recurrent, recurrent_units=3)  # type: ignore[arg-type]
    component_test(torso, sequence_spaces(observation, steps=4, state_size=torso.state_size))


def test_a_torso_that_forgets_passes_the_state_through(box: Callable[..., Leaf]) -> None:
    torso = Torso((box(4),), hidden=(3,))
    assert torso.state_size == 0
    built = build(torso, sequence_spaces((box(4),), steps=2, state_size=0), rows=2)
    x = np.ones((2, 4), np.float32)
    y = built("step", observation=x, state=np.zeros((2, 0), np.float32))["output"]
    twice = built(
        "sequence", observation=np.stack([x, x], 1), first=np.zeros((2, 2), np.uint8), state=np.zeros((2, 0), np.float32)
    )
    np.testing.assert_allclose(twice["output"], np.stack([y, y], 1), rtol=1e-6)


def test_what_does_not_fit_is_refused_by_name(box: Callable[..., Leaf]) -> None:
    with pytest.raises(
        SpaceError,
        match=r"observation: Torso.output, .* convolutions='atari' needs an image .* \[4\]; give .* leave convolutions",
    ):
        Torso((box(4),), convolutions="atari")
    with pytest.raises(SpaceError, match=r"image: Torso.output, .* an image of 19 x 36 .channels last. is too small for convol"):
        Torso((image(19, 36, 3),), convolutions="atari")
    with pytest.raises(ConfigError, match="a torso with recurrent='lstm' needs its state; use step or sequence"):
        build(Torso((box(4),), recurrent="lstm"), output_spaces((box(4),)))
