"""The reference page `docs/reference.md`, written from the code itself, so that it cannot say anything else than the code.

settings, specs (pydantic) ─┐
commands (typer)           ─┼─▶ page ─▶ docs/reference.md        `make docs` writes it, a house test compares
results, metrics, errors   ─┘
"""

from rollstream_cli.reference.page import page

__all__ = ["page"]
