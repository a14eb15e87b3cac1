"""The cell's wake-up call."""

from __future__ import annotations

import threading

from rollstream.store import Store
from rollstream.store.changes import Changes


def test_a_wait_ends_as_soon_as_something_changes(store: Store) -> None:
    changes = Changes(store)
    before = changes.latest()
    woken: list[str] = []
    thread = threading.Thread(target=lambda: woken.append(changes.wait(before, timeout_s=30.0)))
    thread.start()
    changes.announce("experiment", "cartpole-abc123")
    thread.join(timeout=20.0)
    assert woken == [changes.latest()]
    assert woken != [before]


def test_a_change_between_looking_and_waiting_is_not_missed(store: Store) -> None:
    changes = Changes(store)
    before = changes.latest()
    changes.announce("member", "actor-1")
    assert changes.wait(before, timeout_s=0.0) == changes.latest()


def test_a_wait_without_changes_gives_its_own_id_back(store: Store) -> None:
    changes = Changes(store)
    changes.announce("member", "actor-1")
    latest = changes.latest()
    assert changes.wait(latest, timeout_s=0.02) == latest


def test_several_changes_wake_once(store: Store) -> None:
    changes = Changes(store)
    before = changes.latest()
    for number in range(5):
        changes.announce("member", f"actor-{number}")
    newest = changes.wait(before, timeout_s=1.0)
    assert changes.wait(newest, timeout_s=0.02) == newest


def test_the_stream_of_changes_is_bounded(store: Store) -> None:
    changes = Changes(store)
    for number in range(1_300):
        changes.announce("member", str(number))
    assert store.client.xlen("rs:changes") < 1_200
