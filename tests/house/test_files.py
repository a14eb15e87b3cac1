"""Files are small, named for one concept, documented, and say what they export."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from source_tree import Module, modules, parsed_tests

MAX_LINES = 400
MAX_FLOW_LINES = 40
FORBIDDEN_NAMES = re.compile(r"(^|_)(utils?|misc|common|helpers?|managers?)(_|$)")


def code_lines(module: Module) -> int:
    """Lines that are neither blank, comment nor docstring."""
    doc: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            first = node.body[0]
            doc |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = module.text.splitlines()
    return sum(
        1 for number, line in enumerate(lines, 1) if line.strip() and not line.strip().startswith("#") and number not in doc
    )


def test_no_file_is_longer_than_400_lines() -> None:
    long = {module.name: module.lines for module in (*modules(), *parsed_tests()) if module.lines > MAX_LINES}
    assert not long, f"split by concept: {long}"


def test_names_say_a_concept() -> None:
    bad = [
        module.name
        for module in (*modules(), *parsed_tests())
        if any(FORBIDDEN_NAMES.search(part) for part in module.path.stem.split("."))
    ]
    assert not bad


def test_every_module_opens_with_a_docstring() -> None:
    bare = [module.name for module in modules() if not ast.get_docstring(module.tree)]
    assert not bare


def test_every_module_says_what_it_exports() -> None:
    silent = []
    for module in modules():
        names = [target.id for node in module.tree.body for target in _targets(node)]
        if "__all__" not in names and module.path.name != "__main__.py":
            silent.append(module.name)
    assert not silent


def _targets(node: ast.stmt) -> list[ast.Name]:
    if isinstance(node, ast.Assign):
        return [target for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target]
    return []


def test_flow_pages_are_below_40_lines_of_code() -> None:
    pages = {module.name: code_lines(module) for module in modules() if re.search(r"algorithms/\w+/flow\.py$", module.name)}
    assert pages
    assert all(lines < MAX_FLOW_LINES for lines in pages.values()), pages


def test_public_functions_and_classes_have_docstrings() -> None:
    bare = []
    for module in modules():
        for node in module.tree.body:
            is_public = isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and not node.name.startswith("_")
            if is_public and not ast.get_docstring(node):
                bare.append(f"{module.name}:{node.lineno} {node.name}")
    assert not bare


def test_nothing_unfinished_is_left() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX)\b|NotImplementedError|mock\.patch|MagicMock|fakeredis|\bpickle\.(loads?|dumps?)\b")
    found = [
        f"{module.name}:{number}: {line.strip()}"
        for module in (*modules(), *parsed_tests())
        if module.path.parent.name != "house" and "garbage_on_the_wire" not in module.name
        for number, line in enumerate(module.text.splitlines(), 1)
        if marks.search(line)
    ]
    assert not found
