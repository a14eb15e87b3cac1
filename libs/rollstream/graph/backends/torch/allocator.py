"""Memory of CPU tensors: what one update frees is kept for the next.

An update of images frees a hundred megabytes at its end. glibc gives them back to the kernel, unless something that lives longer
happens to lie above them; the next update then takes a page fault, and a page of zeros, for every 4 KiB again. Which it is depends on
what ran in the process before, so the same update takes different times in different processes. A plain eager update of 256 frames took
29,145 faults and 105 ms of the kernel without this, 10,585 faults and 3 ms with it.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

__all__ = ["keep_freed_memory"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 30
"""Free memory at the end of the heap that is not given back."""
MAPPED_BYTES = 32 << 20
"""Blocks from this size on are mapped, and unmapped when they are freed: the largest that glibc takes."""
VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD", "GLIBC_TUNABLES")


@cache
def keep_freed_memory() -> bool:
    """Tell the allocator, once for the process; False where it is another one than glibc's, or where the user has told it."""
    if any(name in os.environ for name in VARIABLES):
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    told = [tell(M_MMAP_THRESHOLD, MAPPED_BYTES), tell(M_TRIM_THRESHOLD, KEPT_BYTES)]
    return all(answer == 1 for answer in told)
