"""No part is public without a test in every mode."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rollstream.graph import components
from rollstream.graph.components import preprocessing

PAGES = [page.read_text() for page in Path(__file__).parent.rglob("test_*.py")]
TESTED = [text for text in PAGES if "component_test(" in text]
PARTS = sorted(
    {
        name
        for package in (components, preprocessing)
        for name in package.__all__
        if isinstance(getattr(package, name), type)
        and any(callable(getattr(getattr(package, name), api, None)) for api in ("output", "step"))
    }
)


def test_parts_are_found() -> None:
    assert {"Conv", "Dense", "Gru", "Preprocessing", "Resize", "Torso"} <= set(PARTS)
    assert len(PARTS) > 15


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_tested_in_every_mode(name: str) -> None:
    assert any(re.search(rf"\b{name}\(", text) for text in TESTED), f"call component_test on {name}"
