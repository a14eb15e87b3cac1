"""Measures what the graph gives: acting, updates, builds, an actor's throughput. Behind `rollstream bench graph`."""

__all__: list[str] = []
