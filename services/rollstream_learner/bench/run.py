"""All parts of `rollstream bench graph`, one after another, as one JSON document."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollstream.clock import SystemClock
from rollstream_learner.bench.suite import Suite, say
from rollstream_learner.bench.targets import TARGETS
from rollstream_learner.bench.timing import Pace

__all__ = ["PARTS", "main"]

PARTS = ("act", "overhead", "update", "build", "apex", "parallel", "actor")


def main(arguments: Sequence[str]) -> int:
    """Measure, and print or write one JSON document; returns the exit code."""
    suite = Suite(
        command="rollstream bench graph",
        parts=PARTS,
        targets=TARGETS,
        measure=_part,
        seconds=1.0,
        repeats=3,
        options=_options,
    )
    return suite.main(arguments)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rllib-python", type=Path, metavar="PATH", help="a Python that has ray[rllib], for the actor's task")


def _part(part: str, options: argparse.Namespace, folder: Path) -> Any:
    """Each part imports what it needs: torch only where torch is measured."""
    pace, clock = Pace(seconds=options.seconds, repeats=options.repeats), SystemClock()
    if part == "act":
        from rollstream_learner.bench.acting import measure_acting

        return measure_acting(pace=pace, clock=clock)
    if part == "overhead":
        from rollstream_learner.bench.acting import measure_overhead

        return measure_overhead(pace=pace, clock=clock)
    if part == "update":
        from rollstream_learner.bench.updating import measure_updates

        return measure_updates(pace=pace, clock=clock, say=say)
    if part == "build":
        from rollstream_learner.bench.building import measure_builds

        return measure_builds(folder=folder, say=say)
    if part == "apex":
        from rollstream_learner.bench.apex import measure_apex

        return measure_apex(pace=pace, clock=clock, rllib_python=options.rllib_python, say=say)
    if part == "parallel":
        from rollstream_learner.bench.parallel import measure_parallel

        return measure_parallel()
    from rollstream_learner.bench.actor import measure_actor

    return measure_actor(repeats=pace.repeats)
