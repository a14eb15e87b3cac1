"""What it takes to build: each measurement in a process of its own, since the first build is what a user waits for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rollstream.clock import SystemClock
from rollstream.graph import Adam, DoubleQLoss, PpoLoss, build_update
from rollstream_learner.bench.subjects import ROWS, SETTINGS, batch_of, dueling_policy, ppo_policy

__all__ = ["main", "measure_builds"]

MODES = ("numpy", "torch", "torch-graph", "torch-compile", "jax")
TIMEOUT_S = 300.0


def measure_builds(*, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Seconds until an update is built and until the first one is done, by loss and mode, with an empty cache and with a full one."""
    found: dict[str, Any] = {}
    for name in ("ppo", "dqn"):
        found[name] = {}
        for mode in MODES:
            cache = folder / f"cache-{name}-{mode}"
            cold, warm = (_in_process(name, mode, cache) for _ in range(2))
            if cold is None or warm is None:
                say(f"build of {name} in mode {mode}: not possible here")
                continue
            found[name][mode] = {**cold, "warm_s": warm["first_s"], "warm_until_first_update_s": warm["until_first_update_s"]}
    recompiles = [figures["recompiles"] for modes in found.values() for figures in modes.values()]
    return {**found, "recompiles": max(recompiles, default=None)}


def _in_process(name: str, mode: str, cache: Path) -> dict[str, Any] | None:
    command = [sys.executable, "-m", "rollstream_learner.bench.building", name, mode]
    environment = {**_environment(), "XDG_CACHE_HOME": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False, env=environment)
    if done.returncode != 0:
        return None
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)


def main(name: str, mode: str) -> dict[str, Any]:
    """Build and update once, in this process; seconds leave out the start of Python, and the imports of the framework are told apart."""
    clock = SystemClock()
    start_s = clock.monotonic_s()
    if mode.startswith("torch"):
        import rollstream.graph.backends.torch.eager_update
    elif mode == "jax":
        import rollstream.graph.backends.jax.engine  # noqa: F401
    imported_s = clock.monotonic_s()
    loss: Any = PpoLoss(ppo_policy()) if name == "ppo" else DoubleQLoss(dueling_policy())
    settings = SETTINGS if name == "ppo" else {}
    built = build_update(loss, batch_rows=ROWS, optimizer=Adam(epsilon=1e-5), max_grad_norm=0.5, mode=mode, seed=0)  # type: ignore[arg-type]
    built_s = clock.monotonic_s()
    batch = batch_of(loss, rows=ROWS)
    made_s = clock.monotonic_s()
    for _ in range(3):
        built.update(batch, learning_rate=1e-3, **settings)
    return {
        "import_s": round(imported_s - start_s, 3),
        "first_s": round(built_s - imported_s, 4),
        "first_ms": round(1e3 * (built_s - imported_s), 2),
        "until_first_update_s": round(clock.monotonic_s() - made_s + built_s - start_s, 3),
        "recompiles": built.recompiles,
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
