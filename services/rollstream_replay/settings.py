"""Settings of the replay service beyond those that every service has."""

from __future__ import annotations

from pydantic import Field

from rollstream_service.settings import CommonSettings

__all__ = ["ReplaySettings"]


class ReplaySettings(CommonSettings):
    """One shard of all tables."""

    shard: int = Field(default=0, ge=0, lt=256)
    """Number of this shard; in a StatefulSet the ordinal of the pod. A key has 8 bits for it."""
    any_of_shards: int = Field(default=0, ge=0, le=256)
    """Serve whichever of so many shards is free, where processes have no numbers (Compose); 0: the one in `shard`."""
    lease_ttl_s: float = Field(default=5.0, gt=0.5)
    """Seconds without renewal after which another process may take the shard over: what a killed shard is away at least."""
    sweep_every_s: float = Field(default=600.0, gt=0.0)
    """Seconds between looks for rows that nobody needs; one seen twice goes. Longer than anybody tries to write the same rows."""
    seed: int = Field(default=0, ge=0, lt=1 << 63)
    """Root of the random draws of samplers and removers; a fixed one, so that a run can be repeated."""

    @property
    def shards(self) -> tuple[int, ...]:
        """Numbers of the shards that this process may serve."""
        return tuple(range(self.any_of_shards)) or (self.shard,)
