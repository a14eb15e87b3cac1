"""The blocks of Python on the pages about replay and the graph run, one after another, as they stand there."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.parametrize(("page", "least"), [("replay.md", 9), ("graph.md", 5), ("flow.md", 7)])
def test_every_block_of_the_page_runs(page: str, least: int) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= least
    module = types.ModuleType("page")
    sys.modules["page"] = module  # dataclasses look their module up
    for number, block in enumerate(blocks):
        exec(compile(block, f"{page}, block {number}", "exec"), module.__dict__)
