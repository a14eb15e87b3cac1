"""Ranks that share an update: two real processes with gloo, equal to one process; the dead and the absent are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from rollstream.errors import ConfigError, DeadlineExceeded
from rollstream.graph.backends.torch.parallel import RankGroup, run_ranks

pytestmark = pytest.mark.timeout(300)
SCRIPT = """
import hashlib, os, sys
import numpy as np
from rollstream.errors import RollstreamError
from rollstream.graph import ActorCriticPolicy, PpoLoss, build_update
from rollstream.graph.backends.torch.parallel import run_ranks
from rollstream.graph.inputs import sample
from rollstream.graph.optimizers import Sgd
from rollstream.spaces import Leaf

SEEN = Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-1.0,) * 4, high=(1.0,) * 4)
ACTION = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
LOSS = PpoLoss(ActorCriticPolicy((SEEN,), (ACTION,), hidden=(16,)))
SETTINGS = dict(clip_ratio=0.2, value_coefficient=0.5, entropy_coefficient=0.01)
drawn = sample(LOSS.arguments("loss"), rows=256, generator=np.random.default_rng(0))
ROWS = {name: column for name, column in drawn.items() if column.ndim}
ROWS["weight"] = np.ones(256, np.float32)


def update(group, rows, mode="torch", seed=0):
    made = build_update(LOSS, batch_rows=rows, optimizer=Sgd(), seed=seed, mode=mode, ranks=group)
    start = 0 if group is None else group.rank * rows
    return made, {name: column[start : start + rows] for name, column in ROWS.items()}


def train(group, what, folder):
    if what == "other":
        update(group, 128, seed=group.rank)
    made, rows = update(group, 128, mode="torch-graph" if what == "graph" else "torch")
    for number in range(3):
        if what == "dies" and number == 1 and group.rank == 1:
            os._exit(9)
        made.update(rows, learning_rate=0.1, **SETTINGS)
    with open(f"{folder}/{group.rank}", "w") as file:
        file.write(hashlib.sha256(made.parameters().tobytes()).hexdigest())
    return made.parameters()


if __name__ == "__main__":
    what, folder = sys.argv[1:]
    try:
        found = run_ranks(train, what, folder, learner_ranks=2, deadline_s=60)
    except RollstreamError as error:
        print(type(error).__name__, error)
        sys.exit()
    made, rows = update(None, 256)
    for _ in range(3):
        made.update(rows, learning_rate=0.1, **SETTINGS)
    print(f"difference {np.abs(found - made.parameters()).max():.3e}")
"""


def _run(what: str, folder: Path) -> str:
    script = folder / "ranks.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script, what, folder], capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("what", ["eager", "graph"])
def test_two_ranks_with_half_the_rows_each_do_what_one_does_with_all(what: str, tmp_path: Path) -> None:
    told = _run(what, tmp_path)
    assert float(told.split("difference ")[1]) < 1e-6
    assert (tmp_path / "0").read_text() == (tmp_path / "1").read_text(), "bit for bit"


def test_a_rank_that_dies_is_named(tmp_path: Path) -> None:
    assert "DeadlineExceeded rank 0 waited for rank 1 of 2 in an update; it is dead, or later than 60 s" in _run("dies", tmp_path)


def test_ranks_that_start_from_different_parameters_are_named(tmp_path: Path) -> None:
    assert "ConfigError rank 1 of 2 has other parameters than rank 0; give all ranks the same seed" in _run("other", tmp_path)


@pytest.mark.parametrize("by", ["file", "tcp"])
def test_a_rank_that_never_comes_is_named_within_the_deadline(by: str, tmp_path: Path) -> None:
    meeting = str(tmp_path / "meeting") if by == "file" else "tcp://127.0.0.1:0"
    with pytest.raises(DeadlineExceeded, match=r"rank 0 waited 0.2 s at .* for ranks 1, 2 of 3; start all ranks"):
        RankGroup(rank=0, count=3, meeting=meeting, deadline_s=0.2).join()


def test_a_rank_that_cannot_reach_the_first_says_so() -> None:
    with pytest.raises(DeadlineExceeded, match="rank 1 of 2 cannot reach rank 0 at tcp://127.0.0.1:9"):
        RankGroup(rank=1, count=2, meeting="tcp://127.0.0.1:9", deadline_s=1.0).join()


def _twice(group: RankGroup, x: int) -> int:
    return 2 * x


def test_one_rank_is_a_group_too() -> None:
    assert run_ranks(_twice, 21, learner_ranks=1, deadline_s=5.0) == 42


def test_groups_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="rank must lie in 0 to 1 with 2 ranks, got 2"):
        RankGroup(rank=2, count=2, meeting="/nowhere")
    with pytest.raises(ConfigError, match="learner_ranks must be >= 1, got 0"):
        run_ranks(np.zeros, learner_ranks=0)
