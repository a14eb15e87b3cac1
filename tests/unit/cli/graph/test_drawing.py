"""The tree of parts as text and as a picture."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from gymnasium.spaces import Box
from rich.console import Console

from rollstream.errors import ConfigError
from rollstream.graph.component_report import ComponentReport, component_report
from rollstream.graph.components import Mlp
from rollstream_cli.graph.drawing import draw_report, mermaid
from rollstream_cli.graph.table import print_report


@pytest.fixture
def report() -> ComponentReport:
    mlp = Mlp(hidden=(4, 3), activation="tanh")
    return component_report(mlp, {"output": {"x": Box(-1, 1, (2,))}}, modes=("numpy",))


def test_mermaid_names_every_part_under_its_parent(report: ComponentReport) -> None:
    text = mermaid(report)
    assert text.startswith("graph LR\n")
    assert 'root["/: Mlp (27)<br/>output: x [B, 2] -> [B, 3]"]' in text
    assert 'n_0["0: Dense (12)<br/>output: x [B, 2] -> [B, 4]"]' in text
    assert "root --> n_1" in text


@pytest.mark.parametrize("ending", ["png", "svg", "mmd"])
def test_a_picture_is_written(report: ComponentReport, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"tree.{ending}"
    draw_report(report, file)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "mmd": b"graph LR"}[ending]
    assert file.read_bytes().startswith(start)


def test_where_a_picture_cannot_go_is_said(report: ComponentReport, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--draw tree.gif: the picture must end in .png, .svg, .pdf, .mmd"):
        draw_report(report, Path("tree.gif"))
    with pytest.raises(ConfigError, match="there is no folder .*missing; make it first"):
        draw_report(report, tmp_path / "missing" / "tree.png")


def test_the_table_indents_parts_and_shows_milliseconds(report: ComponentReport) -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    print_report(report, console)
    text = console.export_text()
    assert "/" in text
    assert "  0" in text
    assert "Dense.output" in text
    assert "numpy ms" in text
    assert "27 parameters; shape pass" in text
