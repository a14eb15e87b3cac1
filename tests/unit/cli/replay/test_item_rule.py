"""Item rules as words on the command line."""

from __future__ import annotations

import pytest

from rollstream.errors import ConfigError
from rollstream.replay.rules import EachRow, Episode, ItemRule, NStep, Sequence, Transition
from rollstream_cli.replay.item_rule import item_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("transition", Transition()),
        ("n_step:5", NStep(5)),
        ("n_step:steps=3,discount=0.99", NStep(3, discount=0.99)),
        ("sequence:80,40,burn_in=20", Sequence(80, 40, burn_in=20)),
        ("episode:1000", Episode(1000)),
        ("each_row", EachRow()),
    ],
)
def test_a_rule_is_named_with_its_arguments(text: str, rule: ItemRule) -> None:
    assert item_rule(text) == rule


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sequences:8,4", "there is no item rule 'sequences'; did you mean 'sequence'"),
        ("sequence:8", "item rule 'sequence:8' has the wrong arguments: .*stride"),
        ("n_step:5,pace=2", "item rule 'n_step:5,pace=2' has the wrong arguments: .*pace"),
        ("n_step:0", "steps must be >= 1, got 0"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        item_rule(text)
