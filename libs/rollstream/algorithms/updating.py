"""The learning half that algorithms share: one loss, one optimizer, one flat vector, and what is saved of them.

class _A2cLearning(Updating):
    def learn(self, batch, *, env_steps): ...       what an algorithm does with a batch is all that it adds
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.optimizing import learning_rate, optimizer
from rollstream.algorithms.settings import OptimizerSettings
from rollstream.errors import ConfigError
from rollstream.graph import Loss, Update, UpdateResult, build_update
from rollstream.seeding import child_seed
from rollstream.spaces import Columns

__all__ = ["Updating"]

COUNTED = ("updates", "skipped_updates")


class Updating:
    """Implements `rollstream.learning.LearningAgent` but for `learn`; of an algorithm with tables also `columns`.

    Args:
        name: of the algorithm; its random numbers are its own.
        loss: what is minimized.
        batch_rows: rows [B] (or sequences) of one update; static.
        seed: of the first parameters.
        further: more arguments of `build_update`, e.g. `accumulate`.

    Attributes:
        update: the executable that holds the parameters.
    """

    def __init__(self, name: str, loss: Loss, settings: OptimizerSettings, *, batch_rows: int, seed: int, **further: Any) -> None:
        self._name = name
        self._settings = settings
        self.update: Update = _build(
            settings,
            loss,
            batch_rows=batch_rows,
            optimizer=optimizer(settings.optimizer),
            groups=settings.learning_rate_groups,
            max_grad_norm=settings.max_gradient_norm,
            mode=settings.mode,
            device=settings.device,
            mixed_precision=settings.mixed_precision,
            seed=child_seed(seed, name, "parameters"),
            **further,
        )

    def rate(self, *, env_steps: int) -> float:
        """The learning rate now."""
        return learning_rate(self._settings, env_steps=env_steps)

    def update_each(
        self, columns: Columns, *, rows: int, learning_rate: float, further: Callable[[], Columns] = dict
    ) -> UpdateResult:
        """One update with each `rows` rows of `columns`, in order; `further` makes more columns for each.

        Returns:
            Metrics are means over the updates, but `updates` and `skipped_updates` are their numbers; outputs are joined [M].
        """
        count = len(next(iter(columns.values())))
        done = []
        for start in range(0, count, rows):
            part = {name: column[start : start + rows] for name, column in columns.items()}
            done.append(self.update.update({**part, **further()}, learning_rate=learning_rate))
        return done[0] if len(done) == 1 else _joined(done)

    def columns(self, sample: Any, *, env_steps: int) -> Columns:
        """Refused: algorithms with a table say what they learn from its items."""
        raise ConfigError(f"{self._name} learns from rollouts, not from replay tables; use an algorithm such as dqn for a table")

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        """What actors act with."""
        return self.update.tensors()

    def sync_target(self) -> None:
        """Copy the parameters to the target network."""
        self.update.sync_target()

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {"update": self.update.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave."""
        self.update.load_state(state["update"])


def _joined(results: Sequence[UpdateResult]) -> UpdateResult:
    """One result of several updates."""
    names = dict.fromkeys(name for result in results for name in result.metrics)
    told = {name: [result.metrics[name] for result in results if name in result.metrics] for name in names}
    metrics = {name: sum(values) if name in COUNTED else sum(values) / len(values) for name, values in told.items()}
    outputs = {name: np.concatenate([result.outputs[name] for result in results]) for name in results[0].outputs}
    return UpdateResult(metrics=metrics, outputs=outputs)


def _build(settings: OptimizerSettings, loss: Loss, **arguments: Any) -> Update:
    if settings.learner_ranks == 1:
        return build_update(loss, **arguments)
    from rollstream.graph.ranks import SharedUpdate

    shared: Any = SharedUpdate(
        build_update, loss, ranks=settings.learner_ranks, backend=settings.learner_ranks_backend, **arguments
    )
    return cast("Update", shared)
