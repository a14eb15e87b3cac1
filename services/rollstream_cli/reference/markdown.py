"""Tables of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["code", "section", "table"]


def section(title: str, *parts: str, level: int = 2) -> str:
    """A heading and what stands under it, blank lines between."""
    return "\n\n".join([f"{'#' * level} {title}", *(part for part in parts if part)])


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are kept on one line.

    >>> print(table(["name", "what"], [["a|b", "one\\ntwo"]]))
    | name | what |
    |---|---|
    | a\\|b | one two |
    """
    lines = [_line(header), "|" + "---|" * len(header)]
    return "\n".join(lines + [_line(row) for row in rows])


def code(text: object) -> str:
    """`text` as code; nothing when it is empty."""
    return f"`{text}`" if str(text) else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
