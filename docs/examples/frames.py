"""Recorded frames as batches for PyTorch: stored once and compressed, stacked when they are read.

    python docs/examples/frames.py

No service is needed: `LocalReplay` starts a server for itself. Ten episodes of a ball that bounces through 84x84 pixels become
transitions of one step. Each needs four frames at both ends; each frame is stored once, in chunks of eight that zstd makes small.
"""

from __future__ import annotations

import numpy as np

from rollstream.replay import NStep, SampleDataset, TableSpec
from rollstream.replay.local import LocalReplay

STACK = 4
STEPS = 100
EPISODES = 10


def episode(seed: int) -> np.ndarray:
    """Frames [T, 84, 84] of a ball over a texture."""
    generator = np.random.default_rng(seed)
    frames = np.tile(generator.integers(60, 120, (84, 84), dtype=np.uint8), (STEPS, 1, 1))
    place, speed = generator.uniform(0, 76, 2), generator.uniform(-4, 4, 2)
    for frame in frames:
        place += speed
        speed = np.where((place < 0) | (place > 76), -speed, speed)
        y, x = place.clip(0, 76).astype(int)
        frame[y : y + 8, x : x + 8] = 255
    return frames


def main() -> None:
    transitions = EPISODES * STEPS
    recorded = {
        "observation": np.concatenate([episode(seed) for seed in range(EPISODES)]),
        "action": np.zeros(transitions, np.int64),
        "reward": np.ones(transitions, np.float32),
        "truncated": np.arange(transitions) % STEPS == STEPS - 1,
    }
    spec = TableSpec(
        name="frames",
        max_items=100_000,
        rows=(("observation", "|u1", (84, 84)), ("action", "<i8", ()), ("reward", "<f4", ())),
        chunk_rows=8,
        stack={"observation": STACK},
    )
    with LocalReplay(tables=[spec]) as replay:
        replay.load("frames", recorded, rule=NStep(1, history=STACK - 1))
        client = replay.client("frames")
        stored, naive = client.info()["bytes"], recorded["observation"].nbytes * 2 * STACK
        print(f"{transitions} transitions take 1/{naive / stored:.0f} of what pairs of stacks would")
        client.close()
        for batch in SampleDataset(lambda: replay.client("frames"), batch_items=32, batches=3):
            now, then = batch["observation"].unbind(1)
            print(
                f"observation {tuple(now.shape)} {now.dtype}, next {tuple(then.shape)}, reward {batch['reward'][:, 0].mean():.1f}"
            )


if __name__ == "__main__":
    main()
