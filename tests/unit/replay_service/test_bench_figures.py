"""Figures of a comparison: which settings are chosen, in which order systems run, ratios, targets, tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from rollstream_replay.bench.compare import Pace, measure_cell
from rollstream_replay.bench.options import make_parser, plan_of, wants_suite
from rollstream_replay.bench.payloads import Payload, rollouts
from rollstream_replay.bench.report import markdown
from rollstream_replay.bench.system import Run, TableCase, Variant
from rollstream_replay.bench.targets import judge

CASE = TableCase(payload=Payload(payload_bytes=400), selector="uniform", max_items=100, fill_items=10)
PACE = Pace(seconds=1.0, warm_up_s=0.1, repeats=3)


@dataclass
class Scripted:
    """A system whose variants have the rates that the test gives; `calls` says what ran, of all systems together."""

    name: str
    rates: dict[tuple[str, str], Sequence[float]]
    calls: list[str] = field(default_factory=list)
    p50_ms: float = 1.0
    clients_max: int = 64
    _at: dict[str, int] = field(default_factory=dict)

    def variants(self, operation: str) -> tuple[Variant, ...]:
        return tuple(Variant(api=api, name=name, clients_max=self.clients_max) for api, name in self.rates)

    def run(self, operation: str, variant: Variant, *, clients: int, seconds: float, warm_up_s: float) -> Run:
        rates = self.rates[variant.api, variant.name]
        at = self._at.get(variant.name, 0)
        self._at[variant.name] = at + 1
        self.calls.append(f"{self.name} {variant.name} {seconds:g}")
        return Run(
            items_per_s=rates[at % len(rates)],
            batch_p50_ms=self.p50_ms,
            batch_p99_ms=2.0,
            batch_max_ms=3.0,
            client_cpu_us_per_item=1.0,
            server_cpu_us_per_item=3.0,
            each_server_cpu_us_per_item=(1.0, 2.0),
            other_cores=0.1,
        )

    def open(self, case: TableCase) -> None: ...

    def fill(self) -> None: ...

    def close(self) -> None: ...


def both(operation: str = "insert", **changes: Any) -> dict[str, Any]:
    calls: list[str] = []
    ours = Scripted("rollstream", {("writer", "flush 40"): [50.0], ("writer", "flush 256"): [90.0, 80.0, 120.0, 100.0]}, calls)
    theirs = Scripted("reverb", {("fast", "a"): [20.0], ("fast", "b"): [10.0], ("slow", "c"): [4.0]}, calls, **changes)
    document = measure_cell([ours, theirs], operation, CASE, clients=1, pace=PACE).to_json()  # type: ignore[arg-type]
    return {**document, "calls": calls}


def test_settings_are_tried_and_the_best_of_each_api_run_in_turn() -> None:
    calls = both()["calls"]
    assert calls[:4] == ["rollstream flush 40 0.5", "rollstream flush 256 0.5", "reverb a 0.5", "reverb b 0.5"]
    assert calls[4:] == 3 * ["rollstream flush 256 1", "reverb a 1", "reverb c 1"]


def test_a_figure_is_the_median_of_its_runs_without_the_trial() -> None:
    figure = both()["rollstream"]["writer"]
    assert figure["runs_items_per_s"] == (80.0, 120.0, 100.0)
    assert figure["items_per_s"] == 100.0
    assert figure["variant"] == "flush 256"
    assert figure["each_server_cpu_us_per_item"] == (1.0, 2.0)


def test_ratios_are_ours_over_each_api_of_theirs() -> None:
    document = both()
    assert document["ratios"] == {"fast": 5.0, "slow": 25.0}
    assert (document["their_best"], document["ratio"]) == ("fast", 5.0)
    assert document["cpu_ratios"] == {"fast": 1.0, "slow": 1.0}
    assert "p50_share" not in document


def test_latency_is_a_share_of_theirs_where_batches_are_equal() -> None:
    assert both("sample_strict", p50_ms=5.0)["p50_share"] == 0.2


def test_an_api_that_is_for_one_client_is_left_out_with_more() -> None:
    system = Scripted("reverb", {("single", "a"): [1.0]}, clients_max=1)
    cell = measure_cell([system], "insert", CASE, clients=2, pace=PACE)
    assert cell.figures == {"reverb": {}}


def cell(operation: str = "insert", **changes: Any) -> dict[str, Any]:
    return {**both(operation), "payload_bytes": 400, "clients": 1, "data": "random", "columns": 1} | changes


def judged(document: dict[str, Any]) -> dict[str, Any]:
    return {target["target"]: target for target in judge(document) if target["met"] is not None}


def test_a_target_is_judged_by_its_worst_figure() -> None:
    document = {"cells": [cell(payload_bytes=4_000, ratio=9.0), cell(payload_bytes=4_000, ratio=4.9, selector="prioritized")]}
    target = judged(document)["insert 4 kB, of the best"]
    assert (target["measured"], target["met"]) == (4.9, False)
    assert not judged({"cells": [cell(payload_bytes=4_000, ratio=9.0, data="compressible")]})


def test_updates_are_judged_where_priorities_mean_something() -> None:
    assert not judged({"cells": [cell("update", ratio=1.0, selector="uniform")]})
    assert judged({"cells": [cell("update", ratio=2.5, selector="prioritized")]})["priority updates, of mutate_priorities"]["met"]


def test_the_ratio_with_four_clients_is_held_against_that_with_one() -> None:
    document = {"cells": [cell(ratio=9.0), cell(clients=4, ratio=6.3), cell(clients=4, ratio=1.0, data="compressible")]}
    target = judged(document)["ratio with 4 clients over that with one"]
    assert (target["measured"], target["met"]) == (0.7, True)


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert all(target["met"] is None and target["measured"] is None for target in judge({}))


def test_single_numbers_are_judged_where_they_are() -> None:
    document = {
        "reconnect": {"rollstream": {"reconnect_s": 0.4}},
        "checkpoint": {"rollstream": {"insert_max_ms": 51.0}},
        "memory": [{"columns": 1, "payload_bytes": 400, "rollstream": [{"share_of_payload": 1.3}, {"share_of_payload": 1.2}]}],
        "limit": [{"payload_bytes": 400, "read_share": 0.6, "write_share": 0.4}],
    }
    found = {name: target["met"] for name, target in judged(document).items()}
    assert found == {
        "reconnect after a restart, s": True,
        "longest insert during a checkpoint, ms": False,
        "stored bytes of a 400 B item, share of the payload": True,
        "reads at 400 B and 4 kB, of pipelined GET": True,
        "writes at 400 B and 4 kB, of pipelined SET": False,
    }


def test_tables_have_our_figure_and_each_api_of_theirs() -> None:
    machine = dict.fromkeys(("cores", "processor", "memory_gib", "system", "python", "server"), "x")
    plan = {"durability": "none", "seconds": 1.0, "repeats": 3}
    text = markdown({"date": "2026-01-01", "machine": machine, "plan": plan, "peer": {"dm_reverb": "0.14.0"}, "cells": [cell()]})
    assert "dm-reverb 0.14.0" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| 400 B, random")]
    assert "100 (0)" in row
    assert "fast: 20, a<br>slow: 4, c" in row
    assert "| 5.00<br>25.00 | 1.00<br>1.00 |" in row


@pytest.mark.parametrize(
    ("arguments", "suite"),
    [
        (["--payload-bytes", "400"], False),
        (["--payload-bytes", "400", "--seconds", "1", "--sampler", "uniform", "--json", "x"], False),
        ([], True),
        (["--quick"], True),
        (["--payload-bytes", "400", "--payload-bytes", "4000"], True),
        (["--payload-bytes", "400", "--clients", "2"], True),
    ],
)
def test_one_payload_without_an_option_of_a_suite_is_the_simple_form(arguments: list[str], suite: bool) -> None:
    assert wants_suite(make_parser().parse_args(arguments)) == suite


def test_a_whole_suite_has_every_case_and_a_quick_one_few() -> None:
    whole, quick = (plan_of(make_parser().parse_args(arguments)) for arguments in ([], ["--quick"]))
    assert {payload.payload_bytes for payload in whole.payloads} == {400, 4_000, 40_000, 400_000, 7_056}
    assert {(payload.data, payload.columns) for payload in whole.payloads} == {
        ("random", 1),
        ("compressible", 1),
        ("random", 5),
        ("frames", 1),
    }
    assert (whole.clients, whole.selectors, whole.durability) == ((1, 2, 4), ("uniform", "prioritized"), "aof")
    assert ([payload.payload_bytes for payload in quick.payloads], quick.clients) == ([400, 40_000], (1,))


@pytest.mark.parametrize(
    "payload",
    [
        Payload(payload_bytes=400),
        Payload(payload_bytes=400, columns=5),
        Payload.of_frames(),
        Payload(payload_bytes=400, data="compressible"),
    ],
)
def test_payload_bytes_are_the_data_alone(payload: Payload) -> None:
    pool = rollouts(payload, environments=2, rows=3, seed=0)
    rows = pool[0].rows
    assert sum(rows[name].nbytes for name in payload.names) == len(rows) * payload.payload_bytes
    assert len(pool) > 1
    first, second = (rollout.rows[payload.names[0]] for rollout in pool[:2])
    assert payload.data == "frames" or not (first == second).all()


def measured(*options: str) -> set[tuple[int, str, str, int]]:
    plan = plan_of(make_parser().parse_args(options))
    return {
        (payload.payload_bytes, payload.data, selector, clients)
        for payload in plan.payloads
        for selector in plan.selectors
        for clients in plan.clients
        if plan.measures(payload, selector=selector, clients=clients)
    }


def test_one_thing_changes_at_a_time_unless_every_combination_is_asked_for() -> None:
    found = measured("--payload-bytes", "400")
    assert found == {
        (400, "random", "uniform", 1),
        *((400, "random", "prioritized", clients) for clients in (1, 2, 4)),
        (400, "compressible", "prioritized", 1),
    }
    assert len(measured("--payload-bytes", "400", "--every-combination")) == 2 * 2 * 3
