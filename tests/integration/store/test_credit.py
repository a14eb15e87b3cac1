"""Credit on a real server: waiting ends with the grant, and credit never goes back."""

from __future__ import annotations

import threading

import pytest

from rollstream.store import Credit, Store


def grant(store: Store, credit: Credit, writer: int, sequence: int) -> None:
    with store.client.pipeline(transaction=True) as pipeline:
        credit.grant(pipeline, writer, sequence)
        pipeline.execute()


@pytest.fixture
def credit(store: Store) -> Credit:
    return Credit(store, credit_key="rs:test:credit", wake_key=lambda writer: f"rs:test:wake:{writer}")


def test_nothing_is_acknowledged_before_the_first_grant(credit: Credit) -> None:
    assert credit.acknowledged(7) == 0


def test_waiting_for_granted_credit_returns_at_once(store: Store, credit: Credit) -> None:
    grant(store, credit, 7, 3)
    assert credit.wait(7, at_least=3, deadline_s=0.0) == 3


def test_waiting_ends_at_the_deadline_with_what_is_acknowledged(store: Store, credit: Credit) -> None:
    grant(store, credit, 7, 3)
    assert credit.wait(7, at_least=4, deadline_s=0.05) == 3


def test_a_waiting_writer_is_woken_by_the_grant(store: Store, credit: Credit) -> None:
    result: list[int] = []
    waiter = threading.Thread(target=lambda: result.append(credit.wait(7, at_least=5, deadline_s=20.0)))
    waiter.start()
    for sequence in range(1, 6):
        grant(store, credit, 7, sequence)
    waiter.join(timeout=20.0)
    assert result == [5]


def test_credit_never_goes_back_even_under_a_new_reader(store: Store, credit: Credit) -> None:
    grant(store, credit, 7, 5)
    grant(store, credit, 7, 3)
    assert credit.acknowledged(7) == 5
    again = Credit(store, credit_key="rs:test:credit", wake_key=lambda writer: f"rs:test:wake:{writer}")
    grant(store, again, 7, 4)
    assert credit.acknowledged(7) == 5


def test_wake_lists_stay_short_and_expire(store: Store, credit: Credit) -> None:
    for sequence in range(50):
        grant(store, credit, 7, sequence)
    assert store.run("read", lambda client: client.llen("rs:test:wake:7")) == 1
    assert store.run("read", lambda client: client.ttl("rs:test:wake:7")) > 0


def test_a_forgotten_writer_leaves_nothing(store: Store, credit: Credit) -> None:
    grant(store, credit, 7, 5)
    credit.forget(7)
    assert store.run("read", lambda client: client.keys("rs:test:*")) == []
    assert credit.acknowledged(7) == 0
