"""The written parts of `docs/algorithms.md`, made from the registry, the flow pages and what was measured.

The page is written by hand but for the parts between `<!-- begin NAME -->` and `<!-- end NAME -->`. `make docs` fills them, a house
test compares.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from rollstream.algorithms.registry import ALGORITHMS, Algorithm
from rollstream.errors import ConfigError
from rollstream_cli.reference.flow_lines import lines_table, our_lines
from rollstream_cli.reference.learning_results import draw_curves, measured_table, published_table, read_goals
from rollstream_cli.reference.markdown import code, section, table

__all__ = ["draw_all", "filled"]

PART = "<!-- begin {name} -->\n{text}\n<!-- end {name} -->"


def filled(page: str, *, learning: Path) -> str:
    """`page` with its written parts as they are now.

    Args:
        learning: folder of results, `docs/learning`.
    """
    parts = {"list": _list(), "lines": lines_table(our_lines()), "measured": _measured(learning)}
    for name, text in parts.items():
        pattern = re.compile(PART.format(name=name, text=".*?"), re.DOTALL)
        if pattern.search(page) is None:
            raise ConfigError(
                f"docs/algorithms.md has no part {name!r}; put {PART.format(name=name, text='...')!r} where it belongs"
            )
        made = PART.format(name=name, text=text)
        page = pattern.sub(made.replace("\\", r"\\"), page, count=1)
    return page


def draw_all(learning: Path) -> None:
    """Draw the curves of all algorithms that were measured."""
    for name in ALGORITHMS:
        goals = read_goals(learning, name)
        if goals:
            draw_curves(goals, learning / f"{name}.png", title=name)


def _list() -> str:
    rows = [
        (
            f"[{name}](#{name})",
            entry.summary,
            entry.spaces,
            entry.policy,
            "yes" if entry.needs_replay else "no",
            entry.status,
        )
        for name, entry in ALGORITHMS.items()
    ]
    return table(("algorithm", "what, and its paper", "spaces", "learns", "replay", "status"), rows)


def _measured(learning: Path) -> str:
    return "\n\n".join(_algorithm(name, entry, learning) for name, entry in ALGORITHMS.items())


def _algorithm(name: str, entry: Algorithm, learning: Path) -> str:
    folder = entry.package.replace(".", "/")
    goals, published = read_goals(learning, name), published_table(learning, name)
    flow = inspect.getsource(entry.member("flow", "flow")).strip()
    return section(
        name,
        f"{entry.summary[:1].upper()}{entry.summary[1:]}. Pages, and details that matter: [{code(folder)}](../libs/{folder}).",
        f"```python\n{flow}\n```",
        measured_table(goals) if goals else "Not measured yet.",
        f"![learning curves of {name}](learning/{name}.png)" if (learning / f"{name}.png").exists() else "",
        f"Published by others:\n\n{published}" if published else "",
        level=3,
    )
