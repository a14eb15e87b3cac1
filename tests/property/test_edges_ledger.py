"""Laws of a reader's bookkeeping, whatever is lost, sent twice, delivered again or acknowledged out of order."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.edges.ledger import Arrival, Ledger

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.integers(1, 2)),  # so many copies of the next message
        st.tuples(st.just("lose"), st.just(0)),
        st.tuples(st.just("again"), st.integers(0, 20)),  # deliver an entry of the stream once more
        st.tuples(st.just("use"), st.integers(0, 20)),  # settle one of the messages in use
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(actions=ACTIONS)
def test_each_message_is_used_once_and_credit_never_passes_one_in_use(actions: list[tuple[str, int]]) -> None:
    book, writer = Ledger(), 1
    book.meet(writer, acknowledged=0, first=1)
    stream: dict[bytes, int] = {}
    in_use: dict[int, bytes] = {}
    used: set[int] = set()
    sequence = entries = granted = 0

    def deliver(entry_id: bytes) -> None:
        number = stream[entry_id]
        arrival = book.arrived(entry_id, writer, number, actor="a", now_s=0.0)
        assert (arrival is Arrival.NEW) == (number not in in_use and number not in used)
        if arrival is Arrival.NEW:
            in_use[number] = entry_id
        elif arrival is Arrival.REPEATED:
            del stream[entry_id]

    for action, argument in actions:
        if action == "lose":
            sequence += 1
        elif action == "send":
            sequence += 1
            for _ in range(argument):
                entries += 1
                stream[b"%d-0" % entries] = sequence
                deliver(b"%d-0" % entries)
        elif action == "again" and stream:
            deliver(sorted(stream)[argument % len(stream)])
        elif action == "use" and in_use:
            number = sorted(in_use)[argument % len(in_use)]
            credit = book.settled_up_to(writer, besides={number})
            assert credit is not None
            assert all(held > credit for held in in_use if held != number)
            assert credit >= granted
            granted = credit
            for entry_id in book.entries(writer, number):
                del stream[entry_id]
            book.settle(writer, number)
            del in_use[number]
            used.add(number)
        assert book.held == len(in_use)

    # Once everything is used, nothing is left in the stream and the writer has all its credit back.
    for number in sorted(in_use):
        granted = book.settled_up_to(writer, besides={number}) or 0
        for entry_id in book.entries(writer, number):
            del stream[entry_id]
        book.settle(writer, number)
    assert stream == {}
    assert granted == max(used | set(in_use), default=0)
