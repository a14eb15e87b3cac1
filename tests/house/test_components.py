"""Components, losses, returns and optimizers are written once for all backends: none of them asks which one runs."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from source_tree import ROOT

PURE = ("components", "policies", "distributions", "losses", "returns", "optimizers")
FRAMEWORKS = {"torch", "jax", "flax", "onnx", "onnxruntime", "rollstream.graph.backends", "rollstream.graph.modes"}
MODES = {"numpy", "torch", "torch-graph", "torch-compile", "onnx", "jax"}


def _files() -> list[Path]:
    return sorted(file for folder in PURE for file in (ROOT / "libs/rollstream/graph" / folder).rglob("*.py"))


def _branches(tree: ast.AST) -> Iterator[str]:
    """Places that know, or ask, which framework runs."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                if any(name == framework or name.startswith(framework + ".") for framework in FRAMEWORKS):
                    yield f"line {node.lineno}: imports {name}"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "type", "hasattr"):
            asked = ast.unparse(node)
            if "ops" in asked.lower():
                yield f"line {node.lineno}: {asked}"
        elif isinstance(node, ast.Compare):
            constants = [part.value for part in [node.left, *node.comparators] if isinstance(part, ast.Constant)]
            if any(constant in MODES for constant in constants if isinstance(constant, str)):
                yield f"line {node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("file", _files(), ids=lambda file: str(file.relative_to(ROOT / "libs/rollstream/graph")))
def test_a_component_has_no_branch_for_a_backend(file: Path) -> None:
    assert not list(_branches(ast.parse(file.read_text())))


def test_a_branch_would_be_found() -> None:
    branch = "import torch.nn\nif mode == 'jax' or isinstance(scope.ops, NumpyOps):\n    pass\n"
    assert len(list(_branches(ast.parse(branch)))) == 3
