"""Control: the REST API of a cell, the scheduler that gives actors to experiments, and the scale of the actors."""

__all__: list[str] = []
