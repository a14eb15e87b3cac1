"""Bounded histories of JSON records."""

from __future__ import annotations

import threading

from rollstream.store import Store
from rollstream.store.journal import Journal


def journal(store: Store, kept_entries: int = 1_000) -> Journal:
    return Journal(store, what="reports", key="rs:exp:x:reports", kept_entries=kept_entries)


def test_records_come_back_in_order_after_the_last_one_seen(store: Store) -> None:
    reports = journal(store)
    for number in range(5):
        reports.add({"number": number})
    first_two = reports.after("0", limit=2)
    assert [record["number"] for _, record in first_two] == [0, 1]
    assert [record["number"] for _, record in reports.after(first_two[-1][0], limit=100)] == [2, 3, 4]


def test_the_newest_record_is_found_without_reading_the_others(store: Store) -> None:
    reports = journal(store)
    assert reports.newest() is None
    reports.add({"number": 1})
    reports.add({"number": 2})
    newest = reports.newest()
    assert newest is not None
    assert newest[1] == {"number": 2}


def test_a_number_that_is_none_is_null_and_never_nan(store: Store) -> None:
    reports = journal(store)
    reports.add({"mean_return": float("nan"), "loss": float("inf"), "episodes": 0})
    assert reports.after("0", limit=1)[0][1] == {"mean_return": None, "loss": None, "episodes": 0}
    raw = store.client.xrange("rs:exp:x:reports")
    assert b"nan" not in str(raw).lower().encode()


def test_a_journal_is_bounded(store: Store) -> None:
    reports = journal(store, kept_entries=100)
    for number in range(500):
        reports.add({"number": number})
    assert store.client.xlen("rs:exp:x:reports") <= 200
    newest = reports.newest()
    assert newest is not None
    assert newest[1] == {"number": 499}


def test_a_wait_ends_with_the_first_record(store: Store) -> None:
    reports = journal(store)
    seen: list[int] = []
    thread = threading.Thread(
        target=lambda: seen.extend(record["number"] for _, record in reports.wait_after("0", limit=10, timeout_s=30.0))
    )
    thread.start()
    reports.add({"number": 7})
    thread.join(timeout=20.0)
    assert seen == [7]


def test_a_wait_in_vain_gives_nothing(store: Store) -> None:
    assert journal(store).wait_after("0", limit=10, timeout_s=0.01) == []
