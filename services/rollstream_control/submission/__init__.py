"""From a document that somebody sent to an experiment that waits for a learner: validation, inspection, idempotency."""

__all__: list[str] = []
