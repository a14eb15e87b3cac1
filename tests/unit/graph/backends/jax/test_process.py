"""What a process tells JAX, in processes of their own: the cache of compiled programs, and nothing that the user has set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

BUILD = """
import json, sys
import numpy as np
import jax
{before}
from rollstream.clock import SystemClock
from rollstream.graph.backends.jax.program import compile_program
from rollstream.graph.backends.jax import process
process.MIN_CACHED_COMPILE_S = 0.0
program = compile_program(lambda x: x * 2 + 1, [np.zeros(3, np.float32)], what="test", clock=SystemClock())
print(json.dumps(dict(
    cached=program.report.cached,
    result=np.asarray(program(np.ones(3, np.float32))).tolist(),
    folder=jax.config.jax_compilation_cache_dir,
    inline=not jax.config.values["jax_cpu_enable_async_dispatch"],
)))
"""


def _run(before: str = "", **environment: str) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XDG_", "ROLLSTREAM_"))}
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(before=before)],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["result"] == [3.0, 3.0, 3.0]
    return found


def test_a_second_process_reads_what_the_first_has_compiled(tmp_path: Path) -> None:
    first, second = (_run(XDG_CACHE_HOME=str(tmp_path)) for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["folder"] == str(tmp_path / "rollstream" / "jax")
    assert first["inline"]


def test_without_a_cache_home_it_lies_below_that_of_the_user(tmp_path: Path) -> None:
    assert _run(HOME=str(tmp_path))["folder"] == str(tmp_path / ".cache" / "rollstream" / "jax")


def test_it_lies_where_the_operator_says(tmp_path: Path) -> None:
    assert _run(ROLLSTREAM_CACHE_DIRECTORY=str(tmp_path))["folder"] == str(tmp_path / "jax")


def test_the_users_own_settings_stay(tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    assert _run(JAX_COMPILATION_CACHE_DIR=own, XDG_CACHE_HOME=str(tmp_path))["folder"] == own
    set_in_code = _run(f"jax.config.update('jax_compilation_cache_dir', {own!r})", JAX_CPU_ENABLE_ASYNC_DISPATCH="1")
    assert (set_in_code["folder"], set_in_code["inline"]) == (own, False)
    assert _run(JAX_COMPILATION_CACHE_DIR="")["cached"] is False
