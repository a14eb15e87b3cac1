"""Companion columns of ragged and optional columns."""

from __future__ import annotations

import pytest

from rollstream.errors import ConfigError
from rollstream.spaces import Column, RowSpec, length_name, optional, present_name, ragged


def test_a_ragged_column_is_followed_by_its_length() -> None:
    tokens, length = ragged(Column(name="tokens", dtype="<i4", shape=(16, 2)))
    assert tokens == Column(name="tokens", dtype="<i4", shape=(16, 2))
    assert length == Column(name=length_name("tokens"), dtype="<u2")


@pytest.mark.parametrize(("max_n", "dtype"), [(65_535, "<u2"), (65_536, "<u4")])
def test_a_length_is_wide_enough_for_its_largest_value(max_n: int, dtype: str) -> None:
    assert ragged(Column(name="points", dtype="<f4", shape=(max_n,)))[1].dtype == dtype


def test_an_optional_column_is_followed_by_a_byte() -> None:
    assert optional(Column(name="goal", dtype="<f4", shape=(3,)))[1] == Column(name=present_name("goal"), dtype="|u1")


def test_a_column_may_be_ragged_and_optional_at_once() -> None:
    goal, length = ragged(Column(name="goal", dtype="<f4", shape=(3,)))
    rows = RowSpec((*optional(goal), length))
    assert rows.dtype.names == ("flags", "version", "goal", "goal.present", "goal.length")


@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_a_ragged_column_without_room_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="ragged column 'tokens' needs the shape"):
        ragged(Column(name="tokens", dtype="<i4", shape=shape))
