"""Where reports go in the run directory."""

from __future__ import annotations

from pathlib import Path

from rollstream.clock import FakeClock
from rollstream.metrics import JsonLines, Report, TensorBoard, read_json_lines

REPORTS = [Report(number=1, env_steps=100), Report(number=2, env_steps=200, mean_return=21.5, metrics={"loss": 0.5})]


def test_json_lines_are_read_back(tmp_path: Path) -> None:
    sink = JsonLines(tmp_path / "run" / "reports.jsonl")
    for report in REPORTS:
        sink.write(report)
    assert read_json_lines(tmp_path / "run" / "reports.jsonl") == REPORTS
    sink.close()


def test_a_resumed_run_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for report in REPORTS:
        sink = JsonLines(tmp_path / "reports.jsonl")
        sink.write(report)
        sink.close()
    assert read_json_lines(tmp_path / "reports.jsonl") == REPORTS


def test_half_a_line_of_a_killed_process_spoils_nothing(tmp_path: Path) -> None:
    path = tmp_path / "reports.jsonl"
    path.write_text('{"env_steps": 10')
    sink = JsonLines(path)
    sink.write(REPORTS[0])
    sink.close()
    assert read_json_lines(path) == REPORTS[:1]


def test_tensorboard_files_hold_the_numbers_that_there_are(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    clock = FakeClock(start_s=1_700_000_000.0)
    sink = TensorBoard(tmp_path, clock=clock)
    for report in REPORTS:
        sink.write(report)
    sink.close()
    accumulator = EventAccumulator(str(tmp_path))
    accumulator.Reload()
    assert {"return/mean", "train/loss", "weights/version"} <= set(accumulator.Tags()["scalars"])
    (event,) = accumulator.Scalars("return/mean")
    assert (event.step, event.value, event.wall_time) == (200, 21.5, 1_700_000_000.0)
