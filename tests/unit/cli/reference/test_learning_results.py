"""Tables and curves of what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream_cli.reference.algorithms_page import filled
from rollstream_cli.reference.learning_results import draw_curves, measured_table, published_table, read_goals


def goal(**changes: Any) -> dict[str, Any]:
    facts = ("seed", "reached", "steps", "wall_s", "training_return", "evaluation_return", "curve")
    first = (0, True, 1200, 3.4, 9.96, None, [[100, 1.0], [1200, 9.96]])
    second = (1, False, 5000, 9.0, 3.0, 2.0, [])
    attempts = [dict(zip(facts, values, strict=True)) for values in (first, second)]
    return {
        "env": "Toy-v0",
        "name": "",
        "goal_return": 9.0,
        "limit_steps": 5000,
        "measured_by": "training",
        "attempts": attempts,
    } | changes


def test_a_row_says_what_each_seed_needed() -> None:
    row = measured_table([goal()]).splitlines()[-1]
    assert row == "| Toy-v0 | 9 | 5,000 | 1,200 / not reached (5,000) | 3 / 9 | 10.0 / 3.0 | - / 2.0 |"


def test_offline_goals_have_no_steps_and_named_ones_their_name() -> None:
    row = measured_table([goal(limit_steps=0, name="expert data", measured_by="evaluation")]).splitlines()[-1]
    assert row.startswith("| Toy-v0 (expert data) | 9 (greedy) | offline | ")


def test_figures_of_others_carry_their_address(tmp_path: Path) -> None:
    (tmp_path / "published.yaml").write_text(
        "sources: {zoo: {name: Zoo, address: 'https://zoo.example', note: one run}}\n"
        "figures: [{algorithm: ppo, source: zoo, env: Toy-v0, return: 5 ± 1, steps: 1M}]\n"
    )
    assert published_table(tmp_path, "ppo").splitlines()[-1] == "| Toy-v0 | 5 ± 1 | 1M | [Zoo](https://zoo.example) | one run |"
    assert published_table(tmp_path, "dqn") == ""


def test_curves_are_drawn_small_and_nothing_without_points(tmp_path: Path) -> None:
    draw_curves([goal(), goal(name="again")], tmp_path / "ppo.png", title="ppo")
    assert 2_000 < (tmp_path / "ppo.png").stat().st_size < 60_000
    draw_curves([goal(attempts=[])], tmp_path / "none.png", title="none")
    assert not (tmp_path / "none.png").exists()


def test_an_algorithm_that_was_not_measured_has_no_goals(tmp_path: Path) -> None:
    assert read_goals(tmp_path, "ppo") == []
    (tmp_path / "ppo.json").write_text(json.dumps({"algorithm": "ppo", "goals": [goal()]}))
    assert read_goals(tmp_path, "ppo")[0]["env"] == "Toy-v0"


def test_a_page_without_a_place_for_a_part_is_refused(tmp_path: Path) -> None:
    (tmp_path / "published.yaml").write_text("sources: {}\nfigures: []\n")
    with pytest.raises(ConfigError, match="docs/algorithms.md has no part 'list'; put '<!-- begin list -->"):
        filled("no parts", learning=tmp_path)
