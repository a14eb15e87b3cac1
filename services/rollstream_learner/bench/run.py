"""All parts of `rollstream bench graph`, one after another, as one JSON document."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError, RollstreamError
from rollstream_learner.bench.timing import Pace

__all__ = ["PARTS", "main"]

PARTS = ("act", "overhead", "update", "build", "apex", "parallel", "actor")
INTERRUPTED = 130


def main(arguments: Sequence[str]) -> int:
    """Measure, and print or write one JSON document; returns the exit code."""
    options = _parser().parse_args(arguments)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        parts = _parts(options.only)
        if options.seconds <= 0 or options.repeats < 1:
            raise ConfigError(f"--seconds must be > 0 and --repeats >= 1, got {options.seconds} and {options.repeats}")
        _write(_measure(options, parts, SystemClock()), options.json)
    except RollstreamError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="rollstream bench graph")
    parser.add_argument("--only", metavar="PART,...", help=f"parts: {', '.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each run of each candidate")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, of which the median is taken")
    parser.add_argument("--rllib-python", type=Path, metavar="PATH", help="a Python that has ray[rllib], for the actor's task")
    parser.add_argument("--json", default="-", help="where the result goes; -: standard output")
    return parser


def _parts(only: str | None) -> tuple[str, ...]:
    parts = tuple(only.split(",")) if only else PARTS
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ConfigError(f"--only {','.join(unknown)}: there is no such part; choose from {', '.join(PARTS)}")
    return parts


def _measure(options: argparse.Namespace, parts: Sequence[str], clock: Clock) -> dict[str, Any]:
    from rollstream_learner.bench.targets import judge

    pace = Pace(seconds=options.seconds, repeats=options.repeats)
    document = _head(options)
    with tempfile.TemporaryDirectory(prefix="rollstream-bench-") as name:
        for part in parts:
            _say(f"{part} ...")
            document[part] = _part(part, options, pace=pace, clock=clock, folder=Path(name))
    document["targets"] = judge(document)
    return document


def _part(part: str, options: argparse.Namespace, *, pace: Pace, clock: Clock, folder: Path) -> Any:
    """Each part imports what it needs: torch only where torch is measured."""
    if part == "act":
        from rollstream_learner.bench.acting import measure_acting

        return measure_acting(pace=pace, clock=clock)
    if part == "overhead":
        from rollstream_learner.bench.acting import measure_overhead

        return measure_overhead(pace=pace, clock=clock)
    if part == "update":
        from rollstream_learner.bench.updating import measure_updates

        return measure_updates(pace=pace, clock=clock, say=_say)
    if part == "build":
        from rollstream_learner.bench.building import measure_builds

        return measure_builds(folder=folder, say=_say)
    if part == "apex":
        from rollstream_learner.bench.apex import measure_apex

        return measure_apex(pace=pace, clock=clock, rllib_python=options.rllib_python, say=_say)
    if part == "parallel":
        from rollstream_learner.bench.parallel import measure_parallel

        return measure_parallel()
    from rollstream_learner.bench.actor import measure_actor

    return measure_actor(repeats=pace.repeats)


def _head(options: argparse.Namespace) -> dict[str, Any]:
    from rollstream import __version__

    threads = os.environ.get("OMP_NUM_THREADS", "unset")
    return {
        "release": __version__,
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "threads": threads,
        "seconds": options.seconds,
        "repeats": options.repeats,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _say(message: str) -> None:
    print(f"bench: {message}", file=sys.stderr, flush=True)


def _write(document: dict[str, Any], target: str) -> None:
    text = json.dumps(document, indent=2)
    if target == "-":
        print(text, flush=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_text(text + "\n")
