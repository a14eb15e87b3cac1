"""The update mode `auto`: where it starts, when it changes over, and what it says."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.clock import FakeClock
from rollstream.errors import ConfigError
from rollstream.graph import ActorCriticPolicy, PpoLoss, Update, build_update
from rollstream.graph.inputs import sample
from rollstream.graph.modes import background
from rollstream.graph.modes.auto import TRIAL_UPDATES, AutoEngine
from rollstream.graph.modes.background import Artefact, BackgroundBuild, cache_directory
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import Engine
from rollstream.spaces import Leaf

SETTINGS = {"clip_ratio": 0.2, "value_coefficient": 0.5, "entropy_coefficient": 0.01}
ROWS = 8
DEADLINE_S = 90.0


@pytest.fixture(autouse=True)
def _not_so_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is busy with tests would let the child wait for minutes."""
    monkeypatch.setattr(background, "NICENESS", 0)


@pytest.fixture
def ppo(box: Callable[..., Leaf], discrete: Callable[..., Leaf]) -> PpoLoss:
    """Of more parameters than NumPy is the fastest for."""
    return PpoLoss(ActorCriticPolicy((box(4),), (discrete(2),), hidden=(400, 400)))


def _columns(loss: PpoLoss) -> dict[str, np.ndarray]:
    drawn = sample(loss.arguments("loss"), rows=ROWS, generator=np.random.default_rng(0))
    return {name: column for name, column in drawn.items() if column.ndim}


class _Engine:
    """Takes a given time for each step."""

    def __init__(self, name: str, clock: FakeClock, step_s: float, log: list[str]) -> None:
        self._name, self._clock, self._step_s, self._log = name, clock, step_s, log

    def stage(self, buffers: Mapping[str, Any]) -> Sequence[str]:
        return [f"{self._name}{number}" for number in range(2)]

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        self._clock.advance(self._step_s)
        self._log.append(minibatch)

    def rows(self) -> Mapping[str, Any]:
        return {"by": np.asarray(self._name)}


class _Builds:
    """Has an outcome from the third time on that it is asked."""

    def __init__(self, outcome: Artefact) -> None:
        self._outcome = outcome
        self.asked = 0

    def poll(self) -> Artefact | None:
        self.asked += 1
        return self._outcome if self.asked == 3 else None


def _auto(outcome: Artefact, *, compiled_s: float, log: list[str], fails: bool = False) -> tuple[AutoEngine, _Builds]:
    clock, builds = FakeClock(), _Builds(outcome)

    def load(found: Artefact) -> Engine:
        if fails:
            raise OSError("no ELF file")
        return _Engine("compiled", clock, compiled_s, log)

    start = _Engine("start", clock, 1e-3, log)
    engine = AutoEngine(start, mode="torch", remark="starts", clock=clock, background=builds, load=load)
    assert list(engine.stage({})) == [0, 1]
    return engine, builds


DONE = Artefact(path=Path("x.pt2"), nodes=9, cached=True)


@pytest.mark.parametrize(("compiled_s", "mode", "runs"), [(5e-4, "torch-graph", "compiled"), (2e-3, "torch", "start")])
def test_both_run_in_turns_and_the_faster_one_stays(compiled_s: float, mode: str, runs: str) -> None:
    log: list[str] = []
    engine, builds = _auto(DONE, compiled_s=compiled_s, log=log)
    for number in range(2 + 4 * TRIAL_UPDATES + 3):
        engine.step(number % 2, learning_rate=0.1, scalars={})
    assert log[:6] == ["start0", "start1", "start0", "compiled1", "start0", "compiled1"]
    assert set(log[-3:]) == {f"{runs}0", f"{runs}1"}
    assert engine.mode == mode
    assert str(engine.rows()["by"]) == runs
    assert builds.asked == 3, "it is not asked again"
    assert (
        f"runs in mode '{mode}': an update took 1000 µs in mode 'torch', {compiled_s * 1e6:.0f} µs compiled" in engine.remarks[-1]
    )
    assert engine.compiled is not None and engine.compiled.cached


@pytest.mark.parametrize("fails", [False, True])
def test_it_stays_where_it_is_when_there_is_nothing_to_load_and_says_so_once(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="rollstream.graph")
    log: list[str] = []
    outcome = DONE if fails else Artefact(path=None, why_not="no compiler")
    engine, _ = _auto(outcome, compiled_s=0.0, log=log, fails=fails)
    for _ in range(20):
        engine.step(0, learning_rate=0.1, scalars={})
    assert set(log) == {"start0"} and engine.mode == "torch"
    why = "the compiled update cannot be loaded: no ELF file" if fails else "no compiler"
    assert engine.remarks == ("starts", f"stays in mode 'torch': {why}")
    assert caplog.messages == ["the update starts", f"the update stays in mode 'torch': {why}"]


def test_small_networks_stay_in_numpy_and_large_ones_are_compiled(
    ppo: PpoLoss, box: Callable[..., Leaf], discrete: Callable[..., Leaf], tmp_path: Path
) -> None:
    policy = ActorCriticPolicy((box(4),), (discrete(2),), hidden=(8,))
    small = build_update(PpoLoss(policy), batch_rows=ROWS, seed=0, mode="auto", cache=tmp_path)
    assert small.mode == "numpy"
    assert "stays in mode 'numpy': no compiled update of at most 120,000 parameters was faster, here 67" in small.report.text()
    large = build_update(ppo, batch_rows=ROWS, seed=0, mode="auto", cache=tmp_path)
    assert large.mode == "numpy" and "compiled in the background" in large.report.text()
    halved = build_update(ppo, batch_rows=ROWS, seed=0, mode="auto", accumulate=2, cache=tmp_path)
    assert halved.mode == "torch", "only torch computes in parts"


def _wait(update: Update, columns: dict[str, np.ndarray], *, remarks: int) -> None:
    end_s = time.monotonic() + DEADLINE_S
    while len(update.report.remarks) < remarks and time.monotonic() < end_s:
        update.update(columns, learning_rate=0.0, **SETTINGS)
        time.sleep(0.1)


def test_without_a_compiler_it_stays_eager_and_the_report_says_what_to_install(
    ppo: PpoLoss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "no-such-compiler"))
    update = build_update(ppo, batch_rows=ROWS, seed=0, mode="auto", cache=tmp_path)
    _wait(update, _columns(ppo), remarks=2)
    assert "stays in mode 'numpy': mode 'torch-graph' needs a C++ compiler" in update.report.remarks[1]
    assert update.updates > 0 and update.recompiles == 0


def test_a_loss_that_cannot_be_sent_to_another_process_trains_on(ppo: PpoLoss, tmp_path: Path) -> None:
    class Local(PpoLoss):
        """Known in this function only."""

    update = build_update(Local(ppo.policy), batch_rows=ROWS, seed=0, mode="auto", cache=tmp_path)
    _wait(update, _columns(ppo), remarks=2)
    assert "stays in mode 'numpy': the loss cannot be sent to another process: " in update.report.remarks[1]
    assert update.updates > 0


def test_a_script_that_is_run_again_by_the_compiling_process_stops_there(
    ppo: PpoLoss, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "PROCESS", "MainProcess")
    with pytest.raises(ConfigError, match="the process that compiles an update runs your script again"):
        build_update(ppo, batch_rows=ROWS, seed=0, mode="auto", cache=tmp_path)


def test_the_cache_lies_where_the_setting_says(tmp_path: Path) -> None:
    known = {"ROLLSTREAM_CACHE_DIRECTORY": "/here", "XDG_CACHE_HOME": "/there"}
    assert cache_directory(TorchOptions(cache=tmp_path), known) == tmp_path
    assert cache_directory(TorchOptions(), known) == Path("/here")
    assert cache_directory(TorchOptions(), {"XDG_CACHE_HOME": "/there"}) == Path("/there/rollstream")
    assert cache_directory(TorchOptions(), {}) == Path.home() / ".cache" / "rollstream"


PARENT = """
import multiprocessing, os, sys
from pathlib import Path
from rollstream.graph import ActorCriticPolicy, PpoLoss, build_update
from rollstream.spaces import Leaf

if __name__ == "__main__":
    seen = Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-1.0,) * 4, high=(1.0,) * 4)
    action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
    policy = ActorCriticPolicy((seen,), (action,), hidden=(400, 400))
    update = build_update(PpoLoss(policy), batch_rows=8, seed=0, mode="auto", cache=Path(sys.argv[1]))
    print(multiprocessing.active_children()[0].pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_compiling_process_ends_with_its_parent_even_when_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, script, tmp_path / "cache"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert Path(f"/proc/{child}").exists()
    parent.kill()
    parent.wait()
    end_s = time.monotonic() + DEADLINE_S
    while _runs(child) and time.monotonic() < end_s:
        time.sleep(0.1)
    assert not _runs(child)


def _runs(pid: int) -> bool:
    """It exists and is no zombie (nobody may be there to collect it)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_takes_too_long_is_given_up(ppo: PpoLoss, tmp_path: Path) -> None:
    clock = FakeClock()
    build = build_update(ppo, batch_rows=ROWS, seed=0, mode="auto", cache=tmp_path)
    plan = build._plan
    builds = BackgroundBuild(plan, TorchOptions(cache=tmp_path), clock=clock)
    assert builds.poll() is None
    assert builds._process.is_alive()
    clock.advance(background.LIMIT_S + 1)
    outcome = builds.poll()
    assert outcome is not None and outcome.why_not == "compiling took longer than 1800 s"
    assert not builds._process.is_alive()
