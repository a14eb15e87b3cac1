"""Recorded data without services: an archive of transitions becomes a table of sequences, and a file again.

python docs/examples/replay_offline.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from rollstream.replay import LocalReplay, Sequence, TableSpec, load_npz

STEPS, EPISODES = 50, 20


def record(path: Path) -> None:
    """What a data set in the form of D4RL looks like."""
    generator = np.random.default_rng(1)
    count = STEPS * EPISODES
    np.savez(
        path,
        observations=generator.normal(size=(count, 3)).astype(np.float32),
        actions=generator.uniform(-1.0, 1.0, size=(count, 1)).astype(np.float32),
        rewards=generator.normal(size=count),
        terminals=np.arange(count) % STEPS == STEPS - 1,
    )


def main() -> None:
    """Load, sample sequences with burn-in, and look at them."""
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "walk.npz"
        record(archive)
        data = load_npz(archive)
        table = TableSpec(name="walks", max_items=10_000, rows=data.row_spec, chunk_rows=5)
        with LocalReplay(Path(folder) / "replay", tables=[table]) as replay:
            loaded = replay.load("walks", data, rule=Sequence(length=10, stride=5, burn_in=5))
            client = replay.client("walks")
            batch = client.sample(batch_items=32, deadline_s=10.0)
            client.close()
    print(f"{loaded.rows} rows of {loaded.episodes} episodes made {loaded.items} sequences")
    print(f"a batch: {batch.rows['observation'].shape}, its cores begin at column {batch.core_start}")


if __name__ == "__main__":
    main()
