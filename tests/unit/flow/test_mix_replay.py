"""IMPALA's replay: how many, which ones, and that every environment step still counts once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollstream.checkpoint.tree import join, split
from rollstream.errors import FlowError
from rollstream.flow import update


def sequences(items: Any) -> list[tuple[int, int]]:
    return [(item.sequence, item.env_steps) for item in items]


def test_behind_every_second_input_that_has_a_past_comes_an_earlier_one(rig: Any, batches: Any) -> None:
    items = sequences(rig.run(lambda stream: stream.mix_replay(slots=2, share=0.5), batches(5)))
    fresh = [number for number, env_steps in items if env_steps]
    assert fresh == [1, 2, 3, 4, 5]
    places = [place for place, (_, env_steps) in enumerate(items) if not env_steps]
    assert places == [3, 6]  # 1 2 3 r 4 5 r
    assert items[3][0] in (1, 2)
    assert items[6][0] in (3, 4)


@pytest.mark.parametrize(("share", "replayed"), [(0.0, 0), (0.1, 10), (1.0, 100), (2.5, 250)])
def test_the_share_is_exact_in_the_long_run(rig: Any, batches: Any, share: float, replayed: int) -> None:
    items = sequences(rig.run(lambda stream: stream.mix_replay(slots=8, share=share), batches(101)))
    assert len(items) == 101 + replayed


def test_every_environment_step_counts_once_however_often_it_is_trained_on(rig: Any, batches: Any) -> None:
    runner = rig.run(lambda stream: stream.mix_replay(slots=4, share=1.0).for_each(update()), batches(10))
    assert len(list(runner)) == 19
    assert len(rig.learner.learned) == 19
    assert rig.counters.value("env_steps_trained") == rig.counters.value("env_steps_sampled") == 40
    assert [item.version for item in rig.learner.learned] == [1] * 19
    assert rig.law_holds(runner)


def test_the_seed_says_which_ones_and_a_restart_goes_on_with_the_same_choice(rig: Any, batches: Any) -> None:
    def build(seed: int) -> Any:
        return lambda stream: stream.mix_replay(slots=4, share=1.0, seed=seed)

    whole = sequences(rig.run(build(3), batches(30)))
    assert sequences(rig.run(build(3), batches(30))) == whole
    assert sequences(rig.run(build(4), batches(30))) != whole
    first = rig.run(build(3), batches(12))
    before = sequences(first)
    value, arrays = split(first.state())
    again = rig.run(build(3), batches(30)[12:])
    again.restore(join(json.loads(json.dumps(value)), arrays))
    assert before + sequences(again) == whole


def test_only_batches_can_be_replayed(rig: Any, batches: Any) -> None:
    with pytest.raises(FlowError, match="operator 'mix_replay' .* replays batches, got a int"):
        list(rig.run(lambda stream: stream.for_each(lambda batch: 3).mix_replay(slots=2, share=1), batches(1)))
