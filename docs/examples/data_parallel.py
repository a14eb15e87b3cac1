"""Two processes share one learner's updates: each takes half of every minibatch, and both apply the same mean gradient.

python docs/examples/data_parallel.py
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from rollstream.graph import ActorCriticPolicy, PpoLoss, build_update
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.ranks import RankGroup, run_ranks
from rollstream.spaces import leaves

LOSS = PpoLoss(ActorCriticPolicy(leaves(Box(-1, 1, (4,)), "observation"), leaves(Discrete(2), "action")))
ROWS = 256
"""Of one minibatch, over all ranks."""


def drawn(step: int) -> dict[str, np.ndarray[Any, Any]]:
    """A minibatch of random rows, the same on all ranks."""
    found = sample(LOSS.arguments("loss"), rows=ROWS, generator=np.random.default_rng(step))
    return {item.name: found[item.name] for item in flat_inputs(LOSS.arguments("loss")) if item.role == "column"}


def learn(group: RankGroup, updates: int) -> str:
    """What every rank runs; gives the hash of its weights."""
    share = ROWS // group.count
    update = build_update(LOSS, batch_rows=share, mode="torch", seed=0, ranks=group)
    for step in range(updates):
        own = {name: column[group.rank * share : (group.rank + 1) * share] for name, column in drawn(step).items()}
        update.update(own, learning_rate=1e-3, clip_ratio=0.2, value_coefficient=0.5, entropy_coefficient=0.01)
    group.require_equal(update.parameters())  # raises when a rank has other weights
    return hashlib.sha256(update.parameters().tobytes()).hexdigest()


if __name__ == "__main__":
    print(run_ranks(learn, 20, learner_ranks=2, deadline_s=60.0))
