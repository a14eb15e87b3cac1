"""Inputs that many losses take."""

from __future__ import annotations

from rollstream.graph.inputs import Input
from rollstream.graph.losses.columns import noise_columns


def test_noise_comes_as_columns_which_whoever_updates_draws() -> None:
    noise = (Input(name="noise.action", shape=(2,), role="noise", noise="normal"),)
    (column,) = noise_columns(noise, prefix="next_")
    assert (column.name, column.shape, column.role, column.noise) == ("next_noise.action", (2,), "column", "normal")
