"""An algorithm is called proven exactly when every seed of each of its goals is recorded as having reached it."""

from __future__ import annotations

import json

import pytest
from tests.learning.goals import Goal, goals_of, proven_algorithms
from tests.learning.prove import RESULTS, facts_of

from rollstream.algorithms import algorithm, known


def unproven(name: str) -> list[str]:
    """Goals, apart from short forms of others, for which a seed is missing or has failed."""
    file = RESULTS / f"{name}.json"
    recorded = json.loads(file.read_text())["goals"] if file.exists() else []
    return [goal.label for goal in goals_of(name) if goal.name != "short" and not all_reached(goal, recorded)]


def all_reached(goal: Goal, recorded: list[dict[str, object]]) -> bool:
    facts = facts_of(goal)
    for entry in recorded:
        if {key: entry.get(key) for key in facts} == facts:
            reached = {done["seed"] for done in entry["attempts"] if done["reached"]}  # type: ignore[attr-defined]
            return set(goal.seeds) <= reached
    return False


@pytest.mark.parametrize("name", known(), ids=str)
def test_the_status_of_an_algorithm_is_what_was_measured(name: str) -> None:
    missing = unproven(name) if name in proven_algorithms() else ["any goal"]
    assert algorithm(name).status == ("new" if missing else "proven"), missing
