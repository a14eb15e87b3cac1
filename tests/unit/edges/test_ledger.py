"""What a reader knows about its writers."""

from __future__ import annotations

from rollstream.edges.ledger import Arrival, Ledger

WRITER = 7


def ledger(*, acknowledged: int = 0, first: int = 1) -> Ledger:
    book = Ledger()
    book.meet(WRITER, acknowledged=acknowledged, first=first)
    return book


def arrive(book: Ledger, sequence: int, *, entry: str = "", now_s: float = 0.0) -> Arrival:
    return book.arrived((entry or f"{sequence}-0").encode(), WRITER, sequence, actor="actor-1", now_s=now_s)


def test_messages_in_order_are_new() -> None:
    book = ledger()
    assert [arrive(book, sequence) for sequence in (1, 2, 3)] == [Arrival.NEW] * 3
    assert book.held == 3


def test_what_an_earlier_reader_acknowledged_is_not_taken_again() -> None:
    book = ledger(acknowledged=4)
    assert arrive(book, 4) is Arrival.REPEATED
    assert arrive(book, 5) is Arrival.NEW


def test_without_an_acknowledgement_the_count_begins_with_the_first_message() -> None:
    book = ledger(first=57)
    assert arrive(book, 57) is Arrival.NEW
    assert book.missing() == 0


def test_the_same_entry_again_is_left_alone_while_it_is_in_use() -> None:
    book = ledger()
    arrive(book, 1)
    assert arrive(book, 1) is Arrival.HELD
    assert book.held == 1


def test_a_copy_of_a_message_in_use_is_deleted_together_with_it() -> None:
    book = ledger()
    arrive(book, 1, entry="1-0")
    assert arrive(book, 1, entry="2-0") is Arrival.COPY
    assert book.entries(WRITER, 1) == [b"1-0", b"2-0"]


def test_a_copy_of_a_used_message_is_repeated() -> None:
    book = ledger()
    arrive(book, 1)
    book.settle(WRITER, 1)
    assert arrive(book, 1, entry="2-0") is Arrival.REPEATED


def test_a_skipped_number_is_missing_and_taken_when_it_comes() -> None:
    book = ledger()
    arrive(book, 1)
    arrive(book, 4)
    assert book.missing() == 2
    assert arrive(book, 2) is Arrival.NEW
    assert book.missing() == 1
    assert book.settled_up_to(WRITER) == 0


def test_credit_stops_before_the_oldest_message_in_use() -> None:
    book = ledger()
    for sequence in (1, 2, 3):
        arrive(book, sequence)
    assert book.settled_up_to(WRITER) == 0
    assert book.settled_up_to(WRITER, besides={2}) == 0
    assert book.settled_up_to(WRITER, besides={1, 2}) == 2
    book.settle(WRITER, 2)
    assert book.settled_up_to(WRITER, besides={1}) == 2
    book.settle(WRITER, 1)
    book.settle(WRITER, 3)
    assert book.settled_up_to(WRITER) == 3


def test_missing_numbers_do_not_hold_credit_back() -> None:
    book = ledger()
    arrive(book, 5)
    assert book.settled_up_to(WRITER, besides={5}) == 5


def test_a_message_that_cannot_be_used_counts_as_settled() -> None:
    book = ledger()
    book.skipped(WRITER, 1)
    assert book.settled_up_to(WRITER) == 1
    assert book.live() == {}
    assert arrive(book, 2) is Arrival.NEW


def test_a_writer_that_was_never_met_is_granted_what_was_used() -> None:
    assert Ledger().settled_up_to(9, besides={3, 4}) == 4
    assert Ledger().entries(9, 3) == []
    Ledger().settle(9, 3)


def test_a_dropped_writer_is_not_live_and_gets_no_credit_until_it_is_heard_again() -> None:
    book = ledger()
    arrive(book, 1)
    book.drop(WRITER)
    assert book.live() == {}
    assert book.settled_up_to(WRITER, besides={1}) is None
    assert arrive(book, 2) is Arrival.NEW
    assert book.live() == {WRITER: "actor-1"}


def test_only_so_many_gone_writers_are_remembered() -> None:
    book = Ledger()
    for writer in range(2_500):
        book.meet(writer, acknowledged=0, first=1)
        book.drop(writer)
    assert sum(book.knows(writer) for writer in range(2_500)) == 1_000
    assert book.knows(2_499)
    book.drop(99_999)


def test_an_actor_was_heard_of_when_the_newest_of_its_writers_was() -> None:
    book = Ledger()
    for writer, now_s in ((1, 10.0), (2, 20.0)):
        book.meet(writer, acknowledged=0, first=1)
        book.arrived(b"%d-0" % writer, writer, 1, actor="actor-1", now_s=now_s)
    assert book.heard_s() == {"actor-1": 20.0}
