"""O34, O35: channels first or last are said or plainly visible, never guessed, and an image of another shape than its space is refused."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from rollstream.errors import EnvironmentFault, SpaceError
from rollstream.graph import build
from rollstream.graph.components import Preprocessing, Torso, parse_chains
from rollstream.graph.inputs import columns_of
from rollstream.spaces import flatten, leaves


def image_space(*shape: int) -> gymnasium.spaces.Box:
    return gymnasium.spaces.Box(0, 255, shape, np.uint8)


def test_o34_both_layouts_of_the_same_picture_give_the_same_features() -> None:
    picture = np.random.default_rng(0).integers(0, 255, (1, 3, 84, 96)).astype(np.uint8)
    found = []
    for x in (picture, picture.transpose(0, 2, 3, 1)):
        observation = leaves(image_space(*x.shape[1:]), "observation")
        torso = Torso(observation, convolutions="atari")
        found.append(
            build(torso, {"output": {"observation": columns_of(observation)}}, seed=3)("output", observation=x)["output"]
        )
    np.testing.assert_allclose(found[0], found[1], atol=1e-5)


def test_o34_an_explicit_layout_is_believed_where_auto_refuses() -> None:
    observation = leaves(image_space(40, 60, 40), "observation")
    refused = (
        r"^observation: an image of shape \[40, 60, 40\] may have its channels first or last; say which with channels: first"
    )
    with pytest.raises(SpaceError, match=refused):
        Torso(observation, convolutions="nature")
    for channels, inputs in (("first", 40), ("last", 40)):
        torso = Torso(observation, convolutions="atari", channels=channels)  # type: ignore[arg-type]
        built = build(torso, {"output": {"observation": columns_of(observation)}})
        assert built.memory.live_views["observation.conv0.weight"].shape == (16, inputs, 8, 8)
        # first: 60 x 40 -> 14 x 9 -> 6 x 3; last: 40 x 60 the other way round
        assert built.memory.live_views["observation.dense.weight"].shape == (32 * 6 * 3, 256)


def test_o34_an_ambiguous_image_is_refused_by_preprocessing_too() -> None:
    observation = leaves(gymnasium.spaces.Dict(camera=image_space(3, 5, 3)), "observation")
    chains = parse_chains({"observation.camera": ["grayscale"]})
    with pytest.raises(
        SpaceError, match=r"^observation.camera: an image of shape \[3, 5, 3\] may have its channels first or last"
    ):
        Preprocessing(observation, chains=chains)
    (gray,) = Preprocessing(observation, chains=chains, channels="last").output_leaves
    assert gray.shape == (3, 5, 1)


def test_o35_data_of_another_shape_than_its_space_is_refused_at_the_first_step() -> None:
    space = image_space(3, 80, 60)  # says [C, W, H]; gives [C, H, W]
    data = np.zeros((2, 3, 60, 80), np.uint8)
    expected = r"observation: expected 2 x uint8\[3, 80, 60\], got an array of shape \[2, 3, 60, 80\] of uint8"
    with pytest.raises(EnvironmentFault, match=expected):
        flatten(space, "observation", data, batch=2)


def test_o35_rows_and_columns_of_an_image_that_is_not_square_stay_apart() -> None:
    observation = leaves(image_space(60, 80, 3), "observation")
    chains = parse_chains({"observation": [{"kind": "resize", "height": 6, "width": 8}]})
    preprocessing = Preprocessing(observation, chains=chains)
    x = np.zeros((1, 60, 80, 3), np.uint8)
    x[0, 10:20, 70:80, 1] = 200
    y = build(preprocessing, {"output": {"observation": columns_of(observation)}})("output", observation=x)["observation"]
    assert y.shape == (1, 6, 8, 3)
    assert np.argwhere(y > 1.0).tolist() == [[0, 1, 7, 1]]
    assert y[0, 1, 7, 1] == pytest.approx(200.0)
