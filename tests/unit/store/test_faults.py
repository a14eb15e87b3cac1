"""Faults in the user's code."""

from __future__ import annotations

from rollstream.store.faults import FaultPlace


def test_a_place_reads_as_operator_and_line() -> None:
    assert str(FaultPlace(operator="advantages", file="flow.py", line=12)) == "advantages at flow.py:12"
    assert str(FaultPlace(operator="update")) == "update"
    assert str(FaultPlace()) == ""
