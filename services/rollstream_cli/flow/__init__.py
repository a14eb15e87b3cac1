"""What `rollstream flow` shows: the flow of an algorithm before it runs, and of an experiment while it runs."""

__all__: list[str] = []
