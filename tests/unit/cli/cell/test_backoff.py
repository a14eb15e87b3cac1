"""Back-off between the lives of a process."""

from __future__ import annotations

from rollstream_cli.cell.backoff import Backoff


def test_waits_double_up_to_five_seconds() -> None:
    backoff = Backoff()
    waits = [backoff.next_s(lived_s=1.0) for _ in range(8)]
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_process_that_lived_half_a_minute_starts_over() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.next_s(lived_s=1.0)
    assert backoff.next_s(lived_s=30.0) == 0.1
    assert backoff.deaths_in_a_row == 1


def test_many_deaths_do_not_overflow() -> None:
    backoff = Backoff()
    assert [backoff.next_s(lived_s=0.0) for _ in range(2_000)][-1] == 5.0
