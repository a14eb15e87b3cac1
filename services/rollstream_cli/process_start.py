"""When this process was started, as the system knows it: the imports of the command line count too."""

from __future__ import annotations

__all__ = ["process_start_wall_s"]


def process_start_wall_s() -> float:
    """Seconds since 1970."""
    import psutil

    return float(psutil.Process().create_time())
