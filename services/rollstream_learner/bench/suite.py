"""A set of measurements as one command: parts one after another, one JSON document, its targets judged at the end."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.errors import ConfigError, RollstreamError
from rollstream_learner.bench.targets import Target, judge

__all__ = ["Suite", "say"]

INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Attributes:
    command: as people type it.
    parts: what `--only` chooses from, in the order in which they run.
    targets: what is meant to be reached.
    measure: a part by its name, with the options and a folder that is gone afterwards.
    seconds, repeats: defaults of the options.
    """

    command: str
    parts: tuple[str, ...]
    targets: Sequence[Target]
    measure: Callable[[str, argparse.Namespace, Path], Any]
    seconds: float
    repeats: int
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None

    def main(self, arguments: Sequence[str]) -> int:
        """Measure, and print or write one JSON document; returns the exit code."""
        options = self._parser().parse_args(arguments)
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            parts = self._chosen(options.only)
            if options.seconds <= 0 or options.repeats < 1:
                raise ConfigError(f"--seconds must be > 0 and --repeats >= 1, got {options.seconds} and {options.repeats}")
            _write(self._document(options, parts), options.json)
        except RollstreamError as error:
            print(error, file=sys.stderr)
            return error.exit_code
        except KeyboardInterrupt:
            print("bench: interrupted", file=sys.stderr)
            return INTERRUPTED
        finally:
            signal.signal(signal.SIGTERM, before)
        return 0

    def _parser(self) -> argparse.ArgumentParser:
        parser = argparse.ArgumentParser(prog=self.command)
        parser.add_argument("--only", metavar="PART,...", help=f"parts: {', '.join(self.parts)}")
        parser.add_argument("--seconds", type=float, default=self.seconds, help="length of each run of each candidate")
        parser.add_argument("--repeats", type=int, default=self.repeats, help="runs of each, of which the median is taken")
        parser.add_argument("--json", default="-", help="where the result goes; -: standard output")
        self.options(parser)
        return parser

    def _chosen(self, only: str | None) -> tuple[str, ...]:
        parts = tuple(only.split(",")) if only else self.parts
        unknown = [part for part in parts if part not in self.parts]
        if unknown:
            raise ConfigError(f"--only {','.join(unknown)}: there is no such part; choose from {', '.join(self.parts)}")
        return parts

    def _document(self, options: argparse.Namespace, parts: Sequence[str]) -> dict[str, Any]:
        document = _head(options)
        with tempfile.TemporaryDirectory(prefix="rollstream-bench-") as name:
            for part in parts:
                say(f"{part} ...")
                document[part] = self.measure(part, options, Path(name))
        document["targets"] = judge(document, self.targets)
        return document


def say(message: str) -> None:
    """Tell how far it is, on standard error."""
    print(f"bench: {message}", file=sys.stderr, flush=True)


def _head(options: argparse.Namespace) -> dict[str, Any]:
    from rollstream import __version__

    return {
        "release": __version__,
        "machine": {"processor": _processor(), "cores": os.cpu_count(), "python": platform.python_version()},
        "threads": os.environ.get("OMP_NUM_THREADS", "unset"),
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


def _write(document: dict[str, Any], target: str) -> None:
    text = json.dumps(document, indent=2)
    if target == "-":
        print(text, flush=True)
    else:
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_text(text + "\n")
