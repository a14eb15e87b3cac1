"""Actors to experiments: the plan (a pure function) and the thread that carries it out."""

__all__: list[str] = []
