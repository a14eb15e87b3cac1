"""Settings of a learner process."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rollstream_service.settings import CommonSettings

__all__ = ["LearnerSettings"]


class LearnerSettings(CommonSettings):
    """A learner is generic: which experiment it runs comes from the cell."""

    runs_dir: Path = Path("runs")
    """Folder of checkpoints, reports and summaries, one sub-folder per experiment; must outlive the process."""
    lease_ttl_s: float = Field(default=6.0, ge=1.0)
    """Seconds after which a dead learner's experiment may be claimed by another; renewed three times as often."""
