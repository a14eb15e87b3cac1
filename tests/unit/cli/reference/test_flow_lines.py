"""How lines of a flow are counted, and what the table says."""

from __future__ import annotations

from rollstream_cli.reference.flow_lines import Theirs, body_lines, lines_table

PAGE = '''
"""A page."""


def flow(config, *, actors, learner):
    """Two lines of
    text that do not count."""
    # does not count: it stands before the first statement
    stream = actors.rollouts(
        steps=config.steps,
    )

    # counts: it stands inside
    return stream
'''


def test_lines_go_from_the_first_statement_to_the_last() -> None:
    assert body_lines(PAGE) == 6
    assert body_lines("def flow(config):\n    return config\n") == 1


def test_the_smallest_of_theirs_is_over_all_that_were_counted() -> None:
    assert Theirs(name="X", ours="x", paper=9, plan=7, today=8).smallest == 7


def test_the_table_has_the_algorithms_that_are_there_and_names_the_rest() -> None:
    table = lines_table({"a3c": 9, "mine": 5})
    assert "| A3C | **9** | 9 | 9 | 70 | - |" in table
    assert "PPO" not in table
    assert table.endswith("Without a counterpart there: mine 5.")
