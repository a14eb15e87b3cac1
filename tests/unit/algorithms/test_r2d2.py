"""R2D2: from sampled sequences to columns, and what its learner hands on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from rollstream.acting import ActorPlace
from rollstream.algorithms.r2d2.agent import R2d2Agent
from rollstream.algorithms.r2d2.config import R2d2Config
from rollstream.algorithms.r2d2.sequences import sequence_columns
from rollstream.spaces import Batch, Flag, Leaf

OBSERVATION = (Leaf(name="observation", kind="box", dtype="<f4", shape=(2,)),)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(3,), starts=(-1,))
PAD = Flag.PAD


@dataclass(frozen=True)
class Items:
    """Two sequences of up to three steps with a burn-in of up to two, as a sample has them."""

    rows: dict[str, Any]
    lengths: Any
    lead: Any
    core_start: int
    probability: Any
    table_items: int


def items(end: Flag = Flag.TERMINATED) -> Items:
    """Item 0: both lead rows and three whole steps. Item 1: one lead row, where its episode begins, then two steps to its end.

    column       0       1       2     3     4     5
    item 0       lead    lead    core  core  core  last
    item 1       PAD     lead F  core  core  last  PAD
    """
    numbers = np.arange(12, dtype=np.float32).reshape(2, 6)
    flags = np.zeros((2, 6), np.uint8)
    flags[1] = [PAD, Flag.FIRST, 0, 0, Flag.FINAL | end, PAD]
    reward = np.array([[9, 9, 1, 2, 4, 8], [0, 9, 1, 2, 0, 0]], np.float32)
    return Items(
        rows={
            "flags": flags,
            "observation": np.stack([numbers, numbers], axis=-1),
            "action": np.array([[0, 0, 1, -1, 0, 1], [0, 0, 1, 1, 0, 0]]),
            "reward": reward,
            "recurrent.torso": numbers[..., None] * np.ones(4, np.float32),
        },
        lengths=np.array([6, 4], np.int32),
        lead=np.array([2, 1], np.int32),
        core_start=2,
        probability=np.array([0.5, 0.25]),
        table_items=4,
    )


def columns(sample: Items, *, n_step: int = 2) -> dict[str, Any]:
    return sequence_columns(
        sample, observation=["observation"], action=["action"], burn_in=2, steps=3, n_step=n_step, discount=0.5
    )


def test_targets_are_n_step_returns_that_get_shorter_at_the_end_of_the_sequence() -> None:
    found = columns(items())
    assert found["reward"][0].tolist() == [1 + 0.5 * 2, 2 + 0.5 * 4, 4]
    assert found["discount"][0].tolist() == [0.25, 0.25, 0.5]
    assert found["bootstrap"][0].tolist() == [2, 3, 3]
    assert found["valid"].tolist() == [[1, 1, 1], [1, 1, 0]]


@pytest.mark.parametrize(("end", "discount"), [(Flag.TERMINATED, [0, 0, 0]), (Flag.TRUNCATED, [0.25, 0.5, 0])])
def test_only_termination_stops_the_bootstrapping(end: Flag, discount: list[float]) -> None:
    found = columns(items(end))
    assert found["reward"][1].tolist() == [1 + 0.5 * 2, 2, 0]
    assert found["bootstrap"][1].tolist() == [2, 2, 2]
    assert found["discount"][1].tolist() == discount


def test_cores_begin_at_one_column_and_the_stored_state_is_that_of_the_first_row() -> None:
    """The lead of item 1 is cut short by the start of its episode, so there its state is 0, whatever was stored."""
    found = columns(items())
    assert found["observation"][0, :, 0].tolist() == [0, 1, 2, 3, 4, 5]
    assert found["first"].tolist() == [[0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]
    assert found["recurrent.torso"][0].tolist() == [0.0] * 4
    assert found["action"].tolist() == [[1, -1, 0], [1, 1, 0]]


def test_a_batch_of_short_sequences_fills_the_same_columns() -> None:
    """The longest sequence of a sample may be shorter than the rule's, and the lead too."""
    sample = items()
    short = Items(
        rows={name: column[1:, 1:5] for name, column in sample.rows.items()},
        lengths=np.array([4], np.int32),
        lead=np.array([1], np.int32),
        core_start=1,
        probability=np.ones(1),
        table_items=1,
    )
    whole, alone = columns(sample), columns(short)
    for name in ("reward", "discount", "bootstrap", "valid"):
        assert alone[name].tolist() == whole[name][1:].tolist(), name
    assert alone["first"][0, 1] == 1, "what stands before does not count"
    assert alone["observation"].shape == (1, 6, 2)
    assert alone["observation"][0, 1:5, 0].tolist() == whole["observation"][1, 1:5, 0].tolist()
    assert alone["action"][0, :2].tolist() == [1, 1]


def agent(**settings: Any) -> R2d2Agent:
    config = R2d2Config(
        batch_items=2, sequence_steps=3, stride_steps=2, burn_in_steps=2, n_step=2, discount=0.5, recurrent_units=2, **settings
    )
    return R2d2Agent(config, observation=OBSERVATION, actions=(ACTION,))


def learned(learner: Any, sample: Items) -> Any:
    return learner.learn(
        Batch(columns=learner.columns(sample, env_steps=0), env_steps=0, version=1, newest_version=1), env_steps=0
    )


def test_an_update_gives_one_priority_a_sequence_with_its_floor() -> None:
    learner = agent(priority_floor=0.25).learning(seed=0)
    plain = agent(priority_floor=0.0).learning(seed=0)
    floored, given = (learned(one, items()).columns["td_error"] for one in (learner, plain))
    assert given.shape == (2,) and (given > 0).all()
    assert floored == pytest.approx(given + 0.25)


def test_steps_behind_the_end_change_nothing() -> None:
    sample, other = items(), items()
    other.rows["reward"][1, 4:] = 77.0
    other.rows["observation"][1, 5:] = -55.0
    assert learned(agent().learning(seed=0), sample).metrics["loss"] == learned(agent().learning(seed=0), other).metrics["loss"]


def test_a_restarted_learner_goes_on_as_it_would_have() -> None:
    learner, again = agent(normalize_observations=True).learning(seed=0), agent(normalize_observations=True).learning(seed=1)
    learned(learner, items())
    learner.sync_target()
    again.restore(learner.state())
    assert learned(again, items()).metrics == learned(learner, items()).metrics


def test_rows_hold_values_and_the_state_and_environments_explore_differently() -> None:
    names = [column.name for column in agent().extra_columns]
    assert names == ["q_taken", "q_max", "recurrent.torso"]
    given = agent().own_settings({"epsilon": 0.4}, place=ActorPlace(ordinal=0, actors=1), envs=2)
    assert given["epsilon"] == pytest.approx([0.4, 0.4**8])


def test_a_stride_that_leaves_steps_out_is_refused() -> None:
    with pytest.raises(ValueError, match=r"stride_steps \(4\) must be <= sequence_steps \(3\), else steps between sequences"):
        R2d2Config(sequence_steps=3, stride_steps=4)
