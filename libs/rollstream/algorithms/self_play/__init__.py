"""Self-play: PPO against itself and against a growing set of frozen snapshots of itself."""

__all__: list[str] = []
