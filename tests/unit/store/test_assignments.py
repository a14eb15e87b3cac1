"""Which actor serves which experiment."""

from __future__ import annotations

from rollstream.store import Store
from rollstream.store.assignments import Assignment, Assignments
from rollstream.store.changes import Changes

WORK = Assignment(experiment="cartpole-abc123", ordinal=1, generation=4)


def test_an_actor_reads_what_it_was_assigned(store: Store) -> None:
    assignments = Assignments(store)
    assert assignments.get("actor-1") is None
    assignments.assign("actor-1", WORK)
    assert assignments.get("actor-1") == WORK
    assert assignments.all() == {"actor-1": WORK}


def test_an_assignment_can_be_taken_back(store: Store) -> None:
    assignments = Assignments(store)
    assignments.assign("actor-1", WORK)
    assignments.assign("actor-1", None)
    assert assignments.get("actor-1") is None
    assert assignments.all() == {}


def test_assigning_wakes_the_actors_only_when_something_changes(store: Store) -> None:
    assignments, changes = Assignments(store), Changes(store)
    assignments.assign("actor-1", WORK)
    woken = changes.latest()
    assert woken != "0-0"
    assignments.assign("actor-1", WORK)
    assignments.assign("actor-2", None)
    assert changes.latest() == woken
