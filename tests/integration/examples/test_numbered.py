"""The ten numbered programs run as a newcomer runs them, each in a process of its own, and print what they promise."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "docs" / "examples"
WITHIN_S = 400.0
PRINTED = {
    "01_custom_step.py": r"steps  return .*  good 0\.\d\d, smoothed 0\.\d\d",
    "02_custom_algorithm.py": r"mean return of 100 greedy episodes: \d+",
    "03_two_policies.py": r"\d+ updates of both, \d+ items in DQN's table",
    "04_custom_environment.py": r"the shortest way earns 0\.95; the greedy policy",
    "05_offline_to_online.py": r"recorded \d+, offline \d+, online \d+",
    "06_own_network.py": r"mean return of 20 greedy episodes: \d+",
    "07_debugging_inline.py": r"the operator: wrong, line \d+, in actor-0\n.*ValueError: expected advantages below 100",
    "08_resume.py": r"first  [\d,]+ steps, .*\nthen   [\d,]+ steps",
    "09_remote_cell.py": r"far-[0-9a-f]{6} succeeded: .*\nleaning right and left it pushes \[\d, \d\]",
}

pytestmark = pytest.mark.timeout(WITHIN_S + 30)


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_a_program_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    done = program([str(EXAMPLES / name)], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(PRINTED[name], done.stdout), done.stdout


def test_the_cells_of_the_notebook_run_in_their_order(tmp_path: Path) -> None:
    cells = json.loads((EXAMPLES / "10_notebook.ipynb").read_text())["cells"]
    source = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    (tmp_path / "notebook.py").write_text(source)
    done = program([str(tmp_path / "notebook.py")], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gather_sync" in done.stdout and "proximal policy optimization" in done.stdout


def test_ten_programs_are_numbered_and_listed() -> None:
    found = sorted(path.name for path in EXAMPLES.glob("[01][0-9]_*"))
    assert [name[:2] for name in found] == [f"{number:02d}" for number in range(1, 11)]
    assert found == sorted([*PRINTED, "10_notebook.ipynb"])
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"({name})" in listed for name in found)


def program(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ROLLSTREAM_")}
    environment = kept | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=WITHIN_S
    )
