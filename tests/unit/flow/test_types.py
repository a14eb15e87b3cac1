"""A type checker infers the items of every chain and refuses wrong ones: mypy over `tests/typing/flow_chains.py`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "tests" / "typing" / "flow_chains.py"
REFUSED = re.compile(r"\)  # refused: (.+)$")


@pytest.mark.timeout(600)
def test_items_are_inferred_through_chains_and_wrong_chains_are_refused() -> None:
    told, trouble, _ = api.run(
        [
            str(PAGE),
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--cache-dir",
            str(ROOT / ".mypy_cache"),
            "--hide-error-context",
            "--no-error-summary",
        ]
    )
    assert not trouble
    errors = {int(found[1]): found[2] for found in re.finditer(r"flow_chains\.py:(\d+): error: (.*)", told)}
    lines = dict(enumerate(PAGE.read_text().splitlines(), 1))
    wanted = {number: found[1] for number, line in lines.items() if (found := REFUSED.search(line))}
    assert len(wanted) >= 10
    assert errors.keys() == wanted.keys(), told
    assert all(words in errors[number] for number, words in wanted.items()), told
