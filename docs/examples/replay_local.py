"""Prioritized replay in one process: a policy writes steps, a learner samples them and returns priorities.

python docs/examples/replay_local.py
"""

from __future__ import annotations

import gymnasium
import numpy as np

from rollstream.replay import LocalReplay, NStep, Prioritized, SampleToInsertRatio, TableSpec, importance_weights

ENVIRONMENTS = 4
RATIO = SampleToInsertRatio(samples_per_insert=4.0, min_items=200, tolerance_items=400.0)
"""Each item is sampled four times on average; whoever runs ahead by more than the tolerance waits for the other."""


def main() -> None:
    """Act for 500 steps of four environments; learn whenever the ratio allows it."""
    table = TableSpec(
        name="replay",
        max_items=10_000,
        sampler=Prioritized(exponent=0.6),
        limiter=RATIO,
        rows=[("observation", "<f4", (4,)), ("action", "<i8", ()), ("reward", "<f4", ())],
    )
    make = [lambda: gymnasium.make("CartPole-v1")] * ENVIRONMENTS
    environments = gymnasium.vector.SyncVectorEnv(make, autoreset_mode=gymnasium.vector.AutoresetMode.SAME_STEP)
    generator = np.random.default_rng(1)
    updates = 0
    with (
        LocalReplay(tables=[table]) as replay,
        replay.trajectory_writer({"replay": NStep(3)}, environments=ENVIRONMENTS) as writer,
    ):
        client = replay.client("replay")
        observation, _ = environments.reset(seed=1)
        for _ in range(500):
            action = generator.integers(2, size=ENVIRONMENTS)
            following, reward, terminated, truncated, info = environments.step(action)
            final = following.copy()
            for index in np.flatnonzero(terminated | truncated):
                final[index] = info["final_obs"][index]
            step = {"observation": observation, "action": action, "reward": reward}
            writer.append(step, terminated=terminated, truncated=truncated, final={"observation": final})
            observation = following
            while client.can_sample(batch_items=64):
                batch = client.sample(batch_items=64, deadline_s=10.0)
                weights = importance_weights(batch.probability, table_items=batch.table_items, beta=0.4)
                td_error = generator.random(len(batch))  # what a network would give
                client.update_priorities(batch.keys, np.abs(td_error) + 1e-3)
                updates += 1
        info = client.info()
        client.close()
    print(f"{info['inserted']:.0f} items written, each sampled {info['samples_per_insert']:.1f} times, in {updates} updates")
    print(f"a batch: observation {batch.rows['observation'].shape}, weights from {weights.min():.2f} to {weights.max():.2f}")


if __name__ == "__main__":
    main()
