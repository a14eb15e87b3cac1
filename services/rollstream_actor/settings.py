"""Settings of an actor process."""

from __future__ import annotations

from pydantic import Field

from rollstream_service.settings import CommonSettings

__all__ = ["ActorSettings"]


class ActorSettings(CommonSettings):
    """An actor is generic: what it does comes from the cell, not from here."""

    environment_restarts: int = Field(default=2, ge=0)
    """Times in a row that a failing environment is made anew before the experiment is told that it cannot work."""
    environment_backoff_s: float = Field(default=0.05, gt=0)
    """Seconds before the first restart of a failing environment; doubles each time. Short, because a run whose environment is
    broken shall end within a second, and so few restarts cannot spin."""
