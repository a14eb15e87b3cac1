"""What JAX needs to be told once per process, before its first program: where compiled programs are kept, and to run them inline.

Nothing is set at import. A cache that the user has chosen (by environment or `jax.config`) stays, and so does
JAX_CPU_ENABLE_ASYNC_DISPATCH in the environment.

Threads: XLA on CPU uses as many as the process may run on (`taskset`, a container's CPU set). To bound them, set in the
environment `NPROC=1` and `XLA_FLAGS=--xla_cpu_multi_thread_eigen=false`; minibatches of small networks run on one thread
anyway.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

import jax

__all__ = ["CACHE_VARIABLE", "cache_folder", "cache_hits", "prepare"]

CACHE_VARIABLE = "JAX_COMPILATION_CACHE_DIR"
"""JAX's own variable: another folder, or empty for no cache."""

MIN_CACHED_COMPILE_S = 0.1
"""Programs that compile faster are not kept: reading them back would take about as long."""

_hits = [0]


@functools.cache
def prepare() -> None:
    """Once per process; later calls do nothing.

    The cache makes a restarted process build in a fraction of the time. Inline dispatch (in the calling thread, not in a pool)
    saves 15 µs of each call, half of a small `act`; it only helps when no array was made before.
    """
    settings: Any = jax.config
    jax.monitoring.register_event_listener(_count_hit)
    if settings.jax_compilation_cache_dir is None and CACHE_VARIABLE not in os.environ:
        settings.update("jax_compilation_cache_dir", str(cache_folder()))
        settings.update("jax_persistent_cache_min_compile_time_secs", MIN_CACHED_COMPILE_S)
    if "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ:
        settings.update("jax_cpu_enable_async_dispatch", False)


def cache_folder() -> Path:
    """`jax` in ROLLSTREAM_CACHE_DIRECTORY, by default in `rollstream` in the user's cache folder (XDG_CACHE_HOME, or ~/.cache)."""
    named = os.environ.get("ROLLSTREAM_CACHE_DIRECTORY")
    if named:
        return Path(named) / "jax"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rollstream" / "jax"


def cache_hits() -> int:
    """Programs of this process that were read from the cache and not compiled."""
    return _hits[0]


def _count_hit(event: str, **_: Any) -> None:
    if event == "/jax/compilation_cache/cache_hits":
        _hits[0] += 1
