"""All parts of `rollstream bench flow`: what dataflow costs beside a loop by hand, and whether more actors bring more.

`python -m rollstream_learner.bench.flow`
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rollstream.clock import SystemClock
from rollstream_learner.bench.suite import Suite, say
from rollstream_learner.bench.targets import Target

__all__ = ["PARTS", "TARGETS", "main"]

PARTS = ("overhead", "operators", "idle", "scaling")
ITEMS = 500
"""Of one of many runs, of which the best counts (`flow_operators.REPEATS`)."""
IN_THREADS = "in threads"
"""Operators that hand items from thread to thread pay for the switch as well; they are listed, and not judged."""
TARGETS = (
    Target(
        name="PPO inline, share of the loop by hand",
        path=("overhead", "share_of_hand_written_loop"),
        bound=0.97,
        at="least",
    ),
    Target(name="dearest operator, us an item", path=("operators", "most_us"), bound=5.0),
    Target(name="as-ready union that waits, cores", path=("idle", "cores"), bound=0.02),
    Target(
        name="16 actors, share of 16 times one",
        path=("scaling", "actors", "16", "share_of_linear"),
        bound=0.9,
        at="least",
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Measure, and print or write one JSON document; returns the exit code."""
    suite = Suite(
        command="rollstream bench flow",
        parts=PARTS,
        targets=TARGETS,
        measure=_part,
        seconds=10.0,
        repeats=1,
        options=_options,
    )
    return suite.main(arguments)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--actors", default="1,2,4,8,16", metavar="N,...", help="numbers of actors to scale over")


def _part(part: str, options: argparse.Namespace, folder: Path) -> Any:
    clock = SystemClock()
    if part == "overhead":
        from rollstream_learner.bench.flow_overhead import measure_overhead

        return measure_overhead(seconds=options.seconds, clock=clock)
    if part == "operators":
        from rollstream_learner.bench.flow_operators import operator_costs

        costs = operator_costs(ITEMS)
        alone = {name: cost_us for name, cost_us in costs.items() if not name.endswith(IN_THREADS)}
        return {"us_per_item": dict(costs), "most_us": max(alone.values()), "dearest": max(alone, key=lambda name: alone[name])}
    if part == "idle":
        from rollstream_learner.bench.flow_idle import measure_idle

        return measure_idle(seconds=options.seconds, clock=clock)
    from rollstream_learner.bench.flow_scaling import measure_scaling, numbers_of_actors

    return measure_scaling(seconds=options.seconds, actors=numbers_of_actors(options.actors), repeats=options.repeats, say=say)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
