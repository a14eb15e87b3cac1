"""The picture at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.metrics import Report, draw_learning_curve


@pytest.mark.parametrize("reports", [[], [Report(env_steps=5)], [Report(env_steps=5, mean_return=1.0), Report(env_steps=9)]])
def test_a_picture_is_drawn_also_when_no_episode_finished(reports: list[Report], tmp_path: Path) -> None:
    path = tmp_path / "run" / "learning_curve.png"
    draw_learning_curve(reports, path, title="ppo on CartPole-v1", goal=475.0)
    assert path.read_bytes().startswith(b"\x89PNG")
