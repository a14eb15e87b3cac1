"""What the goal of CQL is measured against: cloning the same recording stays far below it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.learning.goals import attempt, goals_of

pytestmark = [pytest.mark.learning, pytest.mark.timeout(900)]

CLONED_AT_MOST = 350.0
"""The goal of CQL is 450; cloning came to 125 to 210 with the seeds tried."""


def test_behavior_cloning_of_the_recording_of_cql_stays_below_its_goal(tmp_path: Path) -> None:
    goal = goals_of("cql")[0]
    settings = {name: goal.settings[name] for name in ("batch_items", "evaluate_every_updates")}
    cloning = goal.model_copy(update={"algorithm": "bc", "settings": settings})
    came = attempt(cloning, seed=0, folder=tmp_path)
    assert came.evaluation_return is not None, came.trouble
    assert came.evaluation_return < CLONED_AT_MOST < goal.goal_return
