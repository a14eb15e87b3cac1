"""What the allocator does with freed memory, for a process as a whole: a learner keeps it, a replay shard gives it back.

An update of images frees a hundred megabytes at its end. glibc gives them back to the kernel, unless something that lives longer
happens to lie above them; the next update then takes a page fault, and a page of zeros, for every 4 KiB again. Which it is depends on
what ran in the process before, so the same update takes different times in different processes. A plain eager update of 256 frames took
29,145 faults and 105 ms of the kernel without this, 10,585 faults and 3 ms with it.

A shard copies its index for a snapshot and lets the copy go. Once glibc has seen a large block freed, it takes the next one of that size
from its heaps, one for each thread, where it stays: a table of 100,000 items peaked between 28 and 38 MB, and at 23 to 25 MB with this.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

__all__ = ["give_back_freed_memory", "keep_freed_memory"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 30
"""Free memory at the end of the heap that is not given back."""
LARGEST_MAPPED_BYTES = 32 << 20
"""The largest threshold that glibc takes: blocks from this size on are mapped, and unmapped when they are freed."""
SMALLEST_MAPPED_BYTES = 256 << 10
"""Where memory is given back: below this a page fault for every 4 KiB would be felt."""
VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "LD_PRELOAD", "GLIBC_TUNABLES")


@cache
def keep_freed_memory() -> bool:
    """Keep it for the next update. False where the allocator is another one than glibc's, or where the user has told it."""
    return _tell({M_MMAP_THRESHOLD: LARGEST_MAPPED_BYTES, M_TRIM_THRESHOLD: KEPT_BYTES})


@cache
def give_back_freed_memory() -> bool:
    """Give large blocks back as soon as they are freed, also after others of their size. False as in `keep_freed_memory`."""
    return _tell({M_MMAP_THRESHOLD: SMALLEST_MAPPED_BYTES})


def _tell(parameters: dict[int, int]) -> bool:
    if any(name in os.environ for name in VARIABLES):
        return False
    try:
        tell = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    answers = [tell(parameter, value) for parameter, value in parameters.items()]
    return all(answer == 1 for answer in answers)
