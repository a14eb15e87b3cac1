"""Every message that is raised on purpose has a test that matches some of its words."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from source_tree import modules, parsed_tests

import rollstream.errors

OURS = frozenset(rollstream.errors.__all__)
WORDS = 3
MIN_CHARACTERS = 10


def raised(tree: ast.Module) -> list[tuple[int, ast.expr]]:
    """Line and message of every `raise OurError("...")`, also of errors that are made here and raised elsewhere."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
            if name in OURS and name != "Problem":
                found.append((node.lineno, node.args[0]))
    return found


def literals(message: ast.expr) -> list[str]:
    """The constant parts of a message."""
    return [node.value for node in ast.walk(message) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def phrases(text: str) -> list[str]:
    """Runs of a few words, as a test would quote them."""
    words = text.split()
    if len(words) < WORDS:
        return [" ".join(words)] if len(text.strip()) >= MIN_CHARACTERS else []
    runs = [" ".join(words[start : start + WORDS]) for start in range(len(words) - WORDS + 1)]
    return [run for run in runs if len(run) >= MIN_CHARACTERS] or [" ".join(words)]


def quoted_in_tests() -> str:
    """All strings of all tests, with the escapes of regular expressions taken out and white space folded."""
    strings = [
        node.value
        for module in parsed_tests()
        if "house" not in module.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return "\n".join(re.sub(r"\s+", " ", re.sub(r"\\(.)", r"\1", text)) for text in strings)


def test_every_raised_message_is_matched_by_a_test() -> None:
    corpus = quoted_in_tests()
    untested = []
    for module in modules():
        for line, message in raised(module.tree):
            wanted = [phrase for text in literals(message) for phrase in phrases(text)]
            if wanted and not any(phrase in corpus for phrase in wanted):
                untested.append(f"{module.name}:{line}: {literals(message)[0][:90]!r}")
    assert not untested, "\n".join(untested)
