"""A user's simulator with a bug, in a file of the user's: how long a run takes to end with it, and what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from rollstream.clock import Clock
from rollstream_learner.bench.training_run import TrainingRun

__all__ = ["FILE", "measure_breaking"]

FILE = "users_simulator.py"
WORDS = "the simulator broke"
SOURCE = f'''"""A simulator with a bug that it meets after 2,000 steps, and from then on always."""

from pathlib import Path

import gymnasium
import numpy as np


class Simulator(gymnasium.Env):
    def __init__(self, told):
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (4,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.told = Path(told)
        self.left = 0 if self.told.exists() else 2_000

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(4, np.float32), {{}}

    def step(self, action):
        self.left -= 1
        if self.left <= 0:
            self.fail()
        return np.full(4, self.left / 2_000, np.float32), 1.0, False, self.left % 200 == 0, {{}}

    def fail(self):
        if not self.told.exists():
            self.told.touch()
        raise RuntimeError("{WORDS}")
'''


def measure_breaking(*, folder: Path, within_s: float, clock: Clock, more: list[str]) -> dict[str, Any]:
    """Seconds from the first exception until its words are shown and until the command has ended, and the file of the last frame."""
    folder.mkdir(parents=True)
    (folder / FILE).write_text(SOURCE)
    told = folder / "told"
    run = TrainingRun("ppo", environment=f"{FILE.removesuffix('.py')}:Simulator", seconds=within_s, folder=folder, clock=clock)
    run.run(["--set", f"environment.kwargs.told={told}", *more], python_path=folder, words=WORDS)
    raised_wall_s = told.stat().st_mtime if told.exists() else None
    return {
        "exit_code": run.code,
        "seconds_until_it_is_told": _since(raised_wall_s, run.words_wall_s),
        "seconds_until_it_ends": _since(raised_wall_s, run.ended_wall_s),
        "last_frame": last_frame(run.words),
        "its_words_are_shown": WORDS in run.words,
    }


def last_frame(words: str) -> str:
    """Name of the file in the last frame of a traceback; empty without one."""
    frames = re.findall(r'File "([^"]+)", line', words)
    return Path(frames[-1]).name if frames else ""


def _since(start_wall_s: float | None, end_wall_s: float | None) -> float | None:
    return None if start_wall_s is None or end_wall_s is None else round(end_wall_s - start_wall_s, 2)
