"""9. A cell that stays: start it, submit an experiment over REST, follow its reports, ask its policy to act, take it down.

    python docs/examples/09_remote_cell.py

Here the cell runs on this machine; on a cluster only the URL and the token are others (docs/kubernetes.md), and `rollstream up` is
`helm install`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

EXPERIMENT = {
    "name": "far",
    "algorithm": "ppo",
    "environment": {"id": "CartPole-v1"},
    "stop": {"env_steps": 15_000},
    "evaluation_episodes": 10,
}


def rollstream(*arguments: str, cwd: Path) -> None:
    """The command `rollstream`, as in a terminal."""
    subprocess.run([sys.executable, "-m", "rollstream_cli", *arguments], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def drive(cell: httpx.Client) -> None:
    """Everything that a program does with a cell."""
    experiment = cell.post("/v1/experiments", json=EXPERIMENT).raise_for_status().json()["id"]
    path, seen, view = f"/v1/experiments/{experiment}", "0", {"phase": "queued"}
    while view["phase"] in ("queued", "starting", "running"):
        time.sleep(1.0)
        view = cell.get(path).raise_for_status().json()
        listed = cell.get(f"{path}/reports", params={"after": seen}).raise_for_status().json()
        seen = listed["next_after"]
        for entry in listed["reports"]:
            report = entry["data"]
            print(f"{report['env_steps']:>6} steps  return {report['mean_return'] or 0:5.1f}  {report['bottleneck']}")
    print(f"{experiment} {view['phase']}: {view['reason']}")
    reply = (
        cell.post(f"{path}/act", json={"observations": [[0.0, 0.0, 0.1, 0.0], [0.0, 0.0, -0.1, 0.0]]}).raise_for_status().json()
    )
    print(f"leaning right and left it pushes {reply['actions']}, by weights {reply['weights_version']}")


def main() -> None:
    """Up, drive, down."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rollstream("up", "--dir", "cell", "--actors", "2", cwd=folder)
        try:
            state: dict[str, Any] = json.loads((folder / "cell" / "cell.json").read_text())
            headers = {"Authorization": f"Bearer {state['token']}"}
            with httpx.Client(base_url=state["url"], headers=headers, timeout=30) as cell:
                drive(cell)
        finally:
            rollstream("down", "--dir", "cell", cwd=folder)


if __name__ == "__main__":
    main()
