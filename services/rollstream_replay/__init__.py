"""The replay service: one process that owns one shard of every table of a cell."""

__all__: list[str] = []
