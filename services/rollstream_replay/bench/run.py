"""What `python -m rollstream_replay.bench` does: the simple form, or a suite and its reports."""

from __future__ import annotations

import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rollstream import __version__
from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError, RollstreamError
from rollstream.store.embedded import find_server_binary
from rollstream_replay.bench import simple
from rollstream_replay.bench.options import Plan, make_parser, plan_of, wants_suite
from rollstream_replay.bench.report import draw_cost, markdown
from rollstream_replay.bench.reverb import check_reverb
from rollstream_replay.bench.suite import Suite

__all__ = ["main"]

INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Measure, and print or write one JSON document; returns the exit code."""
    options = make_parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _interrupt)  # so that servers and clients are ended, as by Ctrl-C
    try:
        if wants_suite(options):
            plan = plan_of(options)
            _renice(plan.nice)
            _run_suite(plan, target=options.json, tables=options.markdown, plot=options.plot, clock=SystemClock())
        else:
            _write(simple.measure(simple.load_of(options)), options.json)
    except RollstreamError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _renice(nice: int) -> None:
    """Give this process its priority, which all processes of both systems inherit."""
    if not nice:
        return
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except OSError as error:
        raise ConfigError(
            f"--nice {nice} is not allowed here ({error}); below 0 needs root, so leave it out or raise it"
        ) from error


def _run_suite(plan: Plan, *, target: str, tables: Path | None, plot: Path | None, clock: Clock) -> None:
    with tempfile.TemporaryDirectory(prefix="rollstream-bench-") as name:
        folder = Path(name)
        document = _head(plan, clock)
        if plan.reverb_python is not None:
            document["peer"] = check_reverb(plan.reverb_python, folder=folder, clock=clock)

        def changed() -> None:
            if target != "-":
                _write(document, target)

        Suite(plan, folder=folder, clock=clock, document=document, changed=changed, say=_say).run()
    _write(document, target)
    if tables is not None:
        tables.parent.mkdir(parents=True, exist_ok=True)
        tables.write_text(markdown(document))
    if plot is not None:
        draw_cost(document, plot)


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


def _write(document: dict[str, Any], target: str) -> None:
    text = json.dumps(document, indent=2)
    if target == "-":
        print(text, flush=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_text(text + "\n")


def _head(plan: Plan, clock: Clock) -> dict[str, Any]:
    """Where and how the figures were made."""
    import time

    import psutil

    binary = plan.redis_server or find_server_binary()
    described = asdict(plan) | {
        "reverb_python": plan.reverb_python is not None,
        "redis_server": binary.name,
    }
    return {
        "release": __version__,
        "date": time.strftime("%Y-%m-%d", time.gmtime(clock.wall_s())),
        "machine": {
            "system": f"{platform.system()} {platform.release()}",
            "processor": _processor(),
            "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
            "python": platform.python_version(),
            "server": binary.name,
        },
        "plan": described,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
