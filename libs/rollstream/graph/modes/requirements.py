"""What a mode needs installed."""

from __future__ import annotations

import importlib.util

from rollstream.errors import ConfigError

__all__ = ["require_torch"]


def require_torch(mode: str) -> None:
    """Raise `ConfigError` that says what to install when `mode` needs PyTorch and there is none."""
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(f"mode {mode!r} needs PyTorch, which is not installed; install rollstream[torch]")
