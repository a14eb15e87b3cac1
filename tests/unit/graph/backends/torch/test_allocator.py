"""The allocator keeps what an update frees, unless the user has told it what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import importlib.util, resource, sys
spec = importlib.util.spec_from_file_location("allocator", sys.argv[1])
allocator = importlib.util.module_from_spec(spec)
spec.loader.exec_module(allocator)
import numpy as np

def update():
    frames = [np.ones(7_000_000, np.float32) for _ in range(3)]

kept = allocator.keep_freed_memory()
for _ in range(5):
    update()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
update()
print(kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
FILE = Path(__file__).parents[5] / "libs/rollstream/graph/backends/torch/allocator.py"


def run(environment: dict[str, str]) -> tuple[bool, int]:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(FILE)], capture_output=True, text=True, check=True, env=environment)
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


def test_arrays_as_large_as_before_cost_no_page_faults() -> None:
    kept, faults = run({})
    assert not kept or faults < 1_000  # three arrays of 6,800 pages


def test_who_has_told_the_allocator_is_left_alone() -> None:
    assert run({"MALLOC_TRIM_THRESHOLD_": "131072"})[0] is False
