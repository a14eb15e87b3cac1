"""The source tree, parsed once for all house tests."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Module", "modules", "parsed_tests"]

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Module:
    """One Python file."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        """Path below the repository, with slashes."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    def imports(self) -> set[str]:
        """Full names of imported modules, wherever in the file they are imported at run time."""
        found: set[str] = set()
        for node in _run_time_nodes(self.tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        return found


def _run_time_nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes outside `if TYPE_CHECKING:` blocks."""
    found: list[ast.AST] = []
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        found.append(node)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            stack.extend(node.orelse)
            continue
        stack.extend(ast.iter_child_nodes(node))
    return found


@cache
def modules() -> tuple[Module, ...]:
    """Every module of libs/ and services/."""
    return _parse("libs", "services")


@cache
def parsed_tests() -> tuple[Module, ...]:
    """Every module of tests/."""
    return _parse("tests")


def _parse(*folders: str) -> tuple[Module, ...]:
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    texts = {path: path.read_text() for path in paths}
    return tuple(Module(path, text, ast.parse(text)) for path, text in texts.items())
