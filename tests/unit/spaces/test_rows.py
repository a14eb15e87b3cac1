"""Row layouts made from leaves."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.spaces import Column, Episodes, Leaf, RowSpec, leaves, row_spec

OBSERVATION = leaves(spaces.Dict({"x": spaces.Box(0, 1, (2,), np.float64), "y": spaces.Discrete(3)}), "observation")
ACTION = leaves(spaces.Discrete(4), "action")


def test_a_row_is_packed_observation_action_reward_extras() -> None:
    spec = row_spec(OBSERVATION, ACTION, [Column(name="value", dtype="<f4")])
    assert spec.dtype.names == ("flags", "version", "observation.x", "observation.y", "action", "reward", "value")
    assert spec.row_bytes == 1 + 4 + 16 + 8 + 8 + 4 + 4 == spec.dtype.itemsize


def test_the_hash_follows_the_columns_alone() -> None:
    spec = row_spec(OBSERVATION, ACTION)
    assert RowSpec.from_json(spec.to_json()) == spec
    assert RowSpec.from_json(spec.to_json()).hash == spec.hash
    assert row_spec(OBSERVATION, ACTION, [Column(name="value", dtype="<f4")]).hash != spec.hash


def test_a_name_used_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="column name 'reward' is used twice"):
        row_spec(OBSERVATION, ACTION, [Column(name="reward", dtype="<f4")])
    with pytest.raises(ConfigError, match="column name 'flags' is used twice; flags and version are always there"):
        RowSpec((Column(name="flags", dtype="|u1"),))


def test_the_first_column_that_differs_is_named() -> None:
    ours, theirs = row_spec(OBSERVATION, ACTION), row_spec(OBSERVATION[:1], ACTION)
    with pytest.raises(SchemaMismatch, match=r"row columns differ: actor has observation.y <i8\[\] where table has action"):
        ours.require_equal(theirs, ours="actor", theirs="table")
    with pytest.raises(SchemaMismatch, match="where b has no column"):
        ours.require_equal(RowSpec(ours.columns[:-1]), ours="a", theirs="b")
    ours.require_equal(row_spec(OBSERVATION, ACTION), ours="a", theirs="b")


def test_a_leaf_knows_its_column_and_width() -> None:
    leaf = Leaf(name="o", kind="multi_discrete", dtype="<i8", shape=(2,), counts=(3, 4), starts=(0, 0))
    assert (leaf.column, leaf.size, leaf.features) == (Column(name="o", dtype="<i8", shape=(2,)), 2, 7)
    assert leaf.column.row_bytes == 16


def test_episodes_are_joined_in_order() -> None:
    one = Episodes(returns=np.array([1.0]), lengths=np.array([2]))
    two = Episodes(returns=np.array([3.0]), lengths=np.array([4]))
    assert Episodes.concatenate([one, two]).returns.tolist() == [1.0, 3.0]
    assert len(Episodes.concatenate([])) == 0
