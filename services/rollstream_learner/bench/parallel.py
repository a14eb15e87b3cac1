"""Two ranks of 128 rows each against one process with all 256: the same gradient, and what the exchange costs."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import SystemClock
from rollstream.graph import PpoLoss, Update, build_update
from rollstream.graph.optimizers import Sgd
from rollstream_learner.bench.subjects import ROWS, SETTINGS, batch_of, ppo_policy

__all__ = ["measure_parallel"]

RANKS = 2
UPDATES = 200


def measure_parallel() -> dict[str, Any]:
    """Largest difference of the gradients, and microseconds an update with the exchange, gloo on this machine."""
    from rollstream.graph.backends.torch.parallel import run_ranks

    alone, rows = _update(None)
    before = alone.parameters()
    alone.update(rows, learning_rate=1.0, **SETTINGS)
    found: dict[str, Any] = run_ranks(_rank, learner_ranks=RANKS)
    difference = np.abs((found["parameters"] - before) - (alone.parameters() - before)).max()
    return {"ranks": RANKS, "gradient_difference": float(difference), "us_per_update": found["us_per_update"]}


def _rank(group: Any) -> dict[str, Any]:
    """What each rank does; a plain step of size 1 shows the gradient itself."""
    update, rows = _update(group)
    update.update(rows, learning_rate=1.0, **SETTINGS)
    parameters = update.parameters()
    clock, times = SystemClock(), []
    for _ in range(UPDATES):
        start_s = clock.monotonic_s()
        update.update(rows, learning_rate=1e-4, **SETTINGS)
        times.append(clock.monotonic_s() - start_s)
    return {"parameters": parameters, "us_per_update": round(1e6 * statistics.median(times), 1)}


def _update(group: Any) -> tuple[Update, dict[str, npt.NDArray[Any]]]:
    loss = PpoLoss(ppo_policy())
    share = ROWS if group is None else ROWS // RANKS
    start = 0 if group is None else group.rank * share
    batch = {name: column[start : start + share] for name, column in batch_of(loss, rows=ROWS).items()}
    batch["weight"] = np.ones(share, np.float32)
    return build_update(loss, batch_rows=share, optimizer=Sgd(), mode="torch", seed=0, ranks=group), batch
