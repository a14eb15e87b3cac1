"""How many threads torch may use in this process. Services decide; nothing else in the library sets it."""

from __future__ import annotations

import torch

from rollstream.errors import ConfigError

__all__ = ["set_threads"]


def set_threads(threads: int) -> None:
    """Use `threads` threads inside one operation. With minibatches of small networks, 1 is the fastest."""
    if threads < 1:
        raise ConfigError(f"torch needs at least 1 thread, got {threads}")
    torch.set_num_threads(threads)
