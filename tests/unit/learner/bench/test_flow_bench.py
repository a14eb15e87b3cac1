"""Parts of `rollstream bench flow`: that both loops do the same work, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.clock import SystemClock
from rollstream.errors import ConfigError
from rollstream_learner.bench.flow import PARTS, TARGETS, main
from rollstream_learner.bench.flow_idle import measure_idle
from rollstream_learner.bench.flow_overhead import LoopAsFlow, LoopByHand, measure_overhead
from rollstream_learner.bench.flow_scaling import numbers_of_actors
from rollstream_learner.bench.targets import judge


def test_the_loop_by_hand_and_the_flow_end_with_the_same_weights() -> None:
    by_hand, flow = LoopByHand(SystemClock()), LoopAsFlow(SystemClock(), report_every_s=1e-9)
    for _ in range(3):
        before = by_hand.env_steps
        by_hand.round()
        assert flow.block() == by_hand.env_steps - before
    theirs = flow.parts.learning.tensors(env_steps=0)
    for name, tensor in by_hand.parts.learning.tensors(env_steps=0).items():
        np.testing.assert_array_equal(tensor, theirs[name], err_msg=name)
    by_hand.close()
    flow.close()


def test_overhead_is_told_as_a_share_of_the_loop_by_hand() -> None:
    found = measure_overhead(seconds=0.5, clock=SystemClock())
    assert found["pairs"] == 2
    assert found["by_hand_env_steps_per_s"] > 0
    assert found["share_of_hand_written_loop"] > 0
    judged = {each["target"]: each for each in judge({"overhead": {"share_of_hand_written_loop": 0.96}}, TARGETS)}
    assert judged["PPO inline, share of the loop by hand"]["met"] is False
    assert judged["dearest operator, us an item"]["met"] is None


def test_an_idle_union_is_measured_while_all_its_branches_wait() -> None:
    found = measure_idle(seconds=0.2, clock=SystemClock())
    assert found["branches"] == 3
    assert found["seconds"] >= 0.2
    assert found["cores"] >= 0.0


def test_what_cannot_be_measured_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "idle,fly"]) != 0
    assert f"--only fly: there is no such part; choose from {', '.join(PARTS)}" in capsys.readouterr().err
    assert numbers_of_actors("1,16") == (1, 16)
    with pytest.raises(ConfigError, match="--actors takes whole numbers above 0, separated by commas, got '1,0'"):
        numbers_of_actors("1,0")
