"""apply_gradients: the learner takes an optimizer step with each gradient that the actors computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rollstream.errors import SchemaMismatch
from rollstream.flow.sides import LearnerSide
from rollstream.flow.step import Step
from rollstream.flow.steps.compute_gradients import GRADIENT, REFUSED_METRIC
from rollstream.spaces import Batch

__all__ = ["apply_gradients"]


def apply_gradients() -> Step[Batch, Batch]:
    """One optimizer step (clipped as the settings say) for each row of `gradient`; the batch's environment steps count as trained.

    Gradients that an actor refused, because they were not finite, count as `updates_skipped` under the actor's name.
    """
    return Step(name="apply_gradients", bind=_Applying, where="learner", takes="batch", gives="batch", settles="trained")


@dataclass(frozen=True, slots=True)
class _Applying:
    side: LearnerSide

    def __call__(self, batch: Batch) -> Batch:
        if GRADIENT not in batch.columns:
            raise SchemaMismatch(
                f"apply_gradients needs the column {GRADIENT!r}; the batch has: {', '.join(batch.columns) or 'none'}. "
                "Put compute_gradients() before the gather, or use learner.update() for rows"
            )
        kept = {}
        for name, value in batch.metrics.items():
            if name.startswith(REFUSED_METRIC):
                self.side.counters.add("updates_skipped", int(value), reason=name.removeprefix(REFUSED_METRIC))
            else:
                kept[name] = value
        told = replace(batch, metrics=kept)
        return self.side.learn(told) if batch.rows else told
