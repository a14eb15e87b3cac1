"""Options of `rollstream bench replay`, and the plan that they make."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from rollstream.errors import ConfigError
from rollstream_replay.bench.payloads import Payload
from rollstream_replay.bench.system import OPERATIONS

__all__ = ["PARTS", "Plan", "make_parser", "plan_of", "wants_suite"]

PARTS = ("insert", "sample", "update", "memory", "recovery", "checkpoint", "reconnect", "index", "limit", "cost")
"""What can be measured; `sample` is both asked ahead and one batch at a time, `cost` the whole path by table size."""
RATES = {"insert": ("insert",), "sample": ("sample", "sample_strict"), "update": ("update",)}
PAYLOADS = (400, 4_000, 40_000, 400_000)
QUICK_PAYLOADS = (400, 40_000)
QUICK_PARTS = ("insert", "sample", "update", "memory", "recovery", "checkpoint", "reconnect", "index")
SELECTORS = ("uniform", "prioritized")
CLIENTS = (1, 2, 4)
SUITE_OPTIONS = (
    "quick",
    "only",
    "clients",
    "selector",
    "data",
    "repeats",
    "items",
    "against",
    "reverb_python",
    "durability",
    "markdown",
    "plot",
    "nice",
    "redis_server",
    "chunk_rows",
    "every_combination",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is measured, how long and how often."""

    parts: tuple[str, ...]
    payloads: tuple[Payload, ...]
    selectors: tuple[str, ...]
    clients: tuple[int, ...]
    seconds: float
    warm_up_s: float
    repeats: int
    items: int
    table_bytes: int
    index_items: tuple[int, ...]
    chunk_rows: tuple[int, ...]
    durability: str
    nice: int
    reverb_python: Path | None
    redis_server: Path | None
    every_combination: bool

    def measures(self, payload: Payload, *, selector: str, clients: int) -> bool:
        """Whether this cell is one of the plan's.

        All combinations would take three hours with a peer. So one thing changes at a time: all selectors with one client and random
        data; several clients, and other data, with the last selector only.
        """
        if self.every_combination:
            return True
        plain = payload.data == "random" and payload.columns == 1
        if selector != self.selectors[-1]:
            return plain and clients == self.clients[0]
        return plain or clients == self.clients[0]

    @property
    def operations(self) -> tuple[str, ...]:
        """Rates that are measured, in order."""
        wanted = {operation for part in self.parts for operation in RATES.get(part, ())}
        return tuple(operation for operation in OPERATIONS if operation in wanted)


def make_parser() -> argparse.ArgumentParser:
    """All options; those of the simple form have no meaning in a suite, and the other way round."""
    parser = argparse.ArgumentParser(
        prog="rollstream bench replay",
        description="With one --payload-bytes and none of the options of a suite: one writer and one sampler, as flat JSON. "
        "Otherwise a suite of cases, with --against reverb in turn with dm-reverb.",
    )
    parser.add_argument("--payload-bytes", type=int, action="append", metavar="N", help="bytes of one item; may be repeated")
    parser.add_argument("--seconds", type=float, help="length of each measurement (simple form 5, suite 3, quick 2)")
    parser.add_argument("--json", default="-", help="where the result goes; -: standard output")
    suite = parser.add_argument_group("suite")
    suite.add_argument("--quick", action="store_true", help="1 client, 400 B and 40 kB, random data, one selector, 200,000 items")
    suite.add_argument("--only", metavar="PART,...", help=f"parts: {', '.join(PARTS)}")
    suite.add_argument("--clients", type=int, action="append", metavar="N", help="client processes; may be repeated")
    suite.add_argument("--selector", choices=SELECTORS, action="append", help="may be repeated")
    suite.add_argument("--data", choices=("random", "compressible"), action="append", help="may be repeated")
    suite.add_argument(
        "--every-combination",
        action="store_true",
        help="all payloads with all selectors and all numbers of clients: hours with a peer",
    )
    suite.add_argument("--repeats", type=int, help="runs of each figure, of which the median is taken (3, quick 3)")
    suite.add_argument("--items", type=int, help="items for memory and recovery (1,000,000, quick 200,000)")
    suite.add_argument(
        "--chunk-rows", type=int, action="append", help="rows under one key, for memory; may be repeated (1, 3, 10)"
    )
    suite.add_argument("--against", choices=("reverb",), help="measure this system in turn with ours")
    suite.add_argument("--reverb-python", type=Path, metavar="PATH", help="a Python that has dm-reverb")
    suite.add_argument("--durability", choices=("none", "aof"), help="append-only file of ours (aof; with --against none)")
    suite.add_argument(
        "--redis-server", type=Path, metavar="PATH", help="the Redis or Valkey to start instead of the embedded one"
    )
    suite.add_argument("--nice", type=int, default=0, help="priority of all processes of both systems; below 0 needs root")
    suite.add_argument("--markdown", type=Path, metavar="FILE", help="also write the figures as Markdown tables")
    suite.add_argument("--plot", type=Path, metavar="FILE", help="also draw cost by table size (PNG)")
    simple = parser.add_argument_group("simple form")
    simple.add_argument("--batch-items", type=int, default=256, help="items of one sample")
    simple.add_argument("--n-step", type=int, default=0, help="items of n steps over n + 1 rows; 0: each row is an item")
    simple.add_argument("--environments", type=int, default=16, help="environments of the writer")
    simple.add_argument("--rollout-rows", type=int, default=64, help="rows of each environment in one flush")
    simple.add_argument("--table-items", type=int, default=200_000, help="items that the table holds")
    simple.add_argument("--sampler", choices=SELECTORS, default="prioritized")
    simple.add_argument("--ahead-batches", type=int, default=8, help="batches asked for ahead when throughput is measured")
    simple.add_argument("--updates", action="store_true", help="also return priorities of each sampled batch")
    return parser


def wants_suite(options: argparse.Namespace) -> bool:
    """Whether these options ask for a suite: anything of a suite is named, or not exactly one payload."""
    return len(options.payload_bytes or ()) != 1 or any(getattr(options, name) for name in SUITE_OPTIONS)


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan of a suite.

    Raises:
        ConfigError: a part that there is none of, a number out of range, or one half of a comparison.
    """
    quick = options.quick
    parts = tuple(options.only.split(",")) if options.only else QUICK_PARTS if quick else PARTS
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise ConfigError(f"--only {','.join(unknown)}: there is no such part; choose from {', '.join(PARTS)}")
    if (options.against is None) != (options.reverb_python is None):
        raise ConfigError("--against reverb and --reverb-python PATH go together: the peer runs in a Python that has dm-reverb")
    numbers = {
        "--payload-bytes": options.payload_bytes or [],
        "--clients": options.clients or [],
        "--repeats": [options.repeats] if options.repeats is not None else [],
        "--items": [options.items] if options.items is not None else [],
        "--chunk-rows": options.chunk_rows or [],
        "--seconds": [options.seconds] if options.seconds is not None else [],
    }
    for name, values in numbers.items():
        for value in values:
            least = 4 if name == "--payload-bytes" else 0.05 if name == "--seconds" else 1
            if value < least:
                raise ConfigError(f"{name} must be at least {least}, got {value}")
    if any(clients > 64 for clients in options.clients or ()):
        raise ConfigError(f"--clients must be at most 64, got {max(options.clients)}: each client is a process of its own")
    data = options.data or (["random"] if quick else ["random", "compressible"])
    payloads = [
        Payload(payload_bytes=size, data=kind)
        for kind in data
        for size in options.payload_bytes or (QUICK_PAYLOADS if quick else PAYLOADS)
    ]
    if not quick and options.payload_bytes is None and options.data is None:
        payloads += [Payload(payload_bytes=400, columns=5), Payload.of_frames()]
    return Plan(
        parts=parts,
        payloads=tuple(payloads),
        selectors=tuple(options.selector or (SELECTORS[1:] if quick else SELECTORS)),
        clients=tuple(options.clients or (CLIENTS[:1] if quick else CLIENTS)),
        seconds=options.seconds or (2.0 if quick else 3.0),
        warm_up_s=min(0.5, (options.seconds or 3.0) / 4),
        repeats=options.repeats or 3,
        items=options.items or (200_000 if quick else 1_000_000),
        table_bytes=(400 << 20) if quick else (1 << 30),
        index_items=_index_items(options.items, quick=quick),
        chunk_rows=tuple(options.chunk_rows or (1, 3, 10)),
        durability=options.durability or ("none" if options.against else "aof"),
        nice=options.nice,
        reverb_python=options.reverb_python,
        redis_server=options.redis_server,
        every_combination=options.every_combination,
    )


def _index_items(items: int | None, *, quick: bool) -> tuple[int, ...]:
    """Sizes of the index alone: with `--items` one, so that a test is short."""
    if items is not None:
        return (items,)
    return (10_000, 100_000, 1_000_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)
