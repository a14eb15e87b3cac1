"""Rates and shares of the last seconds, with a clock that is moved by hand."""

from __future__ import annotations

import pytest

from rollstream.clock import FakeClock
from rollstream.errors import SchemaMismatch
from rollstream.flow import ActorFragment, Actors, Description, FlowView, store_into, view_of
from rollstream.flow.handles import TableHandle
from rollstream.flow.meter import Meter
from rollstream.flow.rates import NodeWork, Rates, actor_work, together
from rollstream.flow.toy import ToyActor, ToyTable


def test_shares_are_seconds_a_second_and_a_wait_under_way_counts() -> None:
    clock, meter = FakeClock(), Meter()
    rates = Rates(clock, {"update": meter})
    assert rates.work()["update"].busy_share is None
    meter.items, meter.env_steps, meter.busy_s, meter.waited_s = 8, 80, 1.0, 0.4
    clock.advance(3.0)
    meter.waits_for, meter.waits_since_s = "actors", clock.monotonic_s()
    clock.advance(1.0)
    work = rates.work()["update"]
    assert (work.items_per_s, work.env_steps_per_s) == (2.0, 20.0)
    assert work.busy_share == pytest.approx(1.0 / 4)
    assert work.waited_share == pytest.approx((0.4 + 1.0) / 4)
    assert work.waited_s == pytest.approx(1.4)


def test_the_window_moves_on() -> None:
    clock, meter = FakeClock(), Meter()
    rates = Rates(clock, {"update": meter})
    for _ in range(4):
        clock.advance(5.0)
        rates.work()
    meter.busy_s = 2.0
    clock.advance(5.0)
    assert rates.work()["update"].busy_share == pytest.approx(2.0 / 10)  # not / 25


def test_what_actors_tell_is_put_together() -> None:
    first = {
        "rollouts": {"items": 3.0, "env_steps": 30.0, "busy_s": 2.0, "items_per_s": 1.0, "busy_share": 0.9, "waited_share": 0.1}
    }
    second = {
        "rollouts": {"items": 5.0, "env_steps": 50.0, "busy_s": 4.0, "items_per_s": 2.0, "busy_share": 0.5, "waited_share": 0.5}
    }
    assert together([first, second, {}])["rollouts"] == NodeWork(
        items=8,
        env_steps=80,
        busy_s=6.0,
        waited_s=0.0,
        items_per_s=3.0,
        env_steps_per_s=None,
        busy_share=pytest.approx(0.7),  # type: ignore[arg-type]
        waited_share=pytest.approx(0.3),  # type: ignore[arg-type]
        processes=2,
    )
    assert together([]) == {}


def test_an_actor_tells_of_its_work_and_of_what_it_waited_for() -> None:
    clock = FakeClock()
    table = TableHandle(name="replay")
    flow = Description(Actors().rollouts(steps=5).for_each(store_into(table, 1)).gather_async().report(every_s=1))
    fragment = ActorFragment(flow, ToyActor(clock=clock, environments=2, tables={"replay": ToyTable()}))
    rates = Rates(clock, fragment.meters)
    with fragment.waiting("gather_async"):
        clock.advance(1.5)
    fragment.run_once("gather_async")
    clock.advance(0.5)
    told = actor_work(rates)
    assert told["rollouts"]["items"] == 1.0
    assert told["rollouts"]["env_steps_per_s"] == 5.0
    assert told["rollouts"]["waited_share"] == pytest.approx(0.75)
    assert set(told) == {"rollouts", "store_into"}
    shown = {node.name: node for node in view_of(flow, actors=together([told, told])).nodes}
    assert (shown["rollouts"].items, shown["rollouts"].processes) == (2, 2)
    assert shown["gather_async"].items is None


def test_a_view_survives_json_and_what_is_none_is_named() -> None:
    flow = Description(Actors().rollouts(steps=5).for_each(store_into(TableHandle(name="replay"), 1)).gather_async())
    view = view_of(flow)
    assert FlowView.from_json({**view.to_json(), "of_a_newer_release": 1}) == view
    with pytest.raises(SchemaMismatch, match="not a flow: .*different releases"):
        FlowView.from_json({"nodes": 3})
