"""The allocator keeps what an update frees and gives back what a shard frees, unless the user has told it what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import importlib.util, resource, sys
spec = importlib.util.spec_from_file_location("allocator", sys.argv[1])
allocator = importlib.util.module_from_spec(spec)
spec.loader.exec_module(allocator)
import numpy as np

def update():
    frames = [np.ones(7_000_000, np.float32) for _ in range(3)]

told = getattr(allocator, sys.argv[2])()
for _ in range(5):
    update()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
update()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

before_bytes = resident_bytes()
frames = [np.ones(7_000_000, np.float32) for _ in range(3)]
above = np.ones(25_000, np.float32)  # keeps the heap from being cut
del frames
print(told, faults, resident_bytes() - before_bytes)
"""
FILE = Path(__file__).parents[2] / "libs/rollstream/allocator.py"


def run(function: str, environment: dict[str, str]) -> tuple[bool, int, int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(FILE), function], capture_output=True, text=True, check=True, env=environment
    )
    told, faults, left_bytes = done.stdout.split()
    return told == "True", int(faults), int(left_bytes)


def test_arrays_as_large_as_before_cost_no_page_faults() -> None:
    told, faults, _ = run("keep_freed_memory", {})
    assert not told or faults < 1_000  # three arrays of 6,800 pages


def test_arrays_are_given_back_although_others_as_large_went_before() -> None:
    told, _, left_bytes = run("give_back_freed_memory", {})
    assert not told or left_bytes < 1_000_000  # of three arrays of 28 MB


@pytest.mark.parametrize("function", ["keep_freed_memory", "give_back_freed_memory"])
def test_who_has_told_the_allocator_is_left_alone(function: str) -> None:
    assert run(function, {"MALLOC_TRIM_THRESHOLD_": "131072"})[0] is False
