"""The plan: shares by weight, stable seats, smallest free ordinals; as laws and as worked examples."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rollstream_control.scheduling.plan import Demand, Seat, plan, shares


def demand(experiment: str, *, weight: float = 1.0, actors: int = 100) -> Demand:
    return Demand(experiment=experiment, weight=weight, actors=actors)


def test_shares_follow_the_weights() -> None:
    assert shares([demand("a"), demand("b", weight=3.0)], actors=8) == {"a": 2, "b": 6}


def test_no_experiment_gets_more_than_it_asks_for_and_others_get_the_rest() -> None:
    assert shares([demand("a", weight=9.0, actors=2), demand("b")], actors=8) == {"a": 2, "b": 6}


def test_every_experiment_gets_one_actor_before_weights_count() -> None:
    assert shares([demand("a", weight=1000.0), demand("b", weight=0.001)], actors=3) == {"a": 2, "b": 1}


def test_with_too_few_actors_the_earlier_experiment_is_served_first() -> None:
    assert shares([demand("a"), demand("b", weight=5.0)], actors=1) == {"a": 1, "b": 0}


def test_without_experiments_nobody_gets_a_seat() -> None:
    assert plan(actors=["actor-0"], demands=[], current={"actor-0": Seat(experiment="gone", ordinal=0)}) == {}


def test_new_actors_get_the_smallest_free_ordinals_in_the_order_of_their_numbers() -> None:
    seats = plan(actors=["actor-10", "actor-2", "actor-1"], demands=[demand("a")], current={})
    assert {actor: seat.ordinal for actor, seat in seats.items()} == {"actor-1": 0, "actor-2": 1, "actor-10": 2}


def test_an_actor_that_left_is_replaced_under_its_ordinal_and_the_others_stay() -> None:
    current = {f"actor-{n}": Seat(experiment="a", ordinal=n) for n in range(3)}
    seats = plan(actors=["actor-0", "actor-2", "spare"], demands=[demand("a", actors=3)], current=current)
    assert seats == {
        "actor-0": Seat(experiment="a", ordinal=0),
        "actor-2": Seat(experiment="a", ordinal=2),
        "spare": Seat(experiment="a", ordinal=1),
    }


def test_a_second_experiment_takes_the_actors_with_the_highest_ordinals() -> None:
    current = {f"actor-{n}": Seat(experiment="a", ordinal=n) for n in range(4)}
    seats = plan(actors=list(current), demands=[demand("a"), demand("b")], current=current)
    assert {actor for actor, seat in seats.items() if seat.experiment == "a"} == {"actor-0", "actor-1"}
    assert {seats[actor].ordinal for actor in ("actor-2", "actor-3")} == {0, 1}


def test_two_actors_that_claim_the_same_seat_are_told_apart() -> None:
    same = Seat(experiment="a", ordinal=0)
    seats = plan(actors=["x", "y"], demands=[demand("a")], current={"x": same, "y": same})
    assert sorted(seat.ordinal for seat in seats.values()) == [0, 1]


NAMES = st.sampled_from(["a", "b", "c", "d"])
DEMANDS = st.lists(
    st.builds(
        Demand, experiment=NAMES, weight=st.floats(min_value=0.01, max_value=100), actors=st.integers(min_value=1, max_value=9)
    ),
    max_size=4,
    unique_by=lambda entry: entry.experiment,
)


@given(demands=DEMANDS, actors=st.integers(min_value=0, max_value=30))
def test_law_one_more_actor_takes_nothing_from_anybody(demands: list[Demand], actors: int) -> None:
    before, after = shares(demands, actors=actors), shares(demands, actors=actors + 1)
    grown = [experiment for experiment in before if after[experiment] != before[experiment]]
    assert all(after[experiment] == before[experiment] + 1 for experiment in grown)
    assert len(grown) <= 1


@given(demands=DEMANDS, actors=st.integers(min_value=0, max_value=30))
def test_law_no_actor_is_idle_while_somebody_wants_one(demands: list[Demand], actors: int) -> None:
    share = shares(demands, actors=actors)
    assert sum(share.values()) == min(actors, sum(entry.actors for entry in demands))
    assert all(share[entry.experiment] <= entry.actors for entry in demands)


@given(
    demands=DEMANDS,
    actors=st.sets(st.integers(min_value=0, max_value=12)),
    current=st.dictionaries(
        st.integers(min_value=0, max_value=12),
        st.builds(Seat, experiment=NAMES, ordinal=st.integers(min_value=0, max_value=12)),
    ),
)
def test_law_a_plan_that_was_carried_out_is_not_changed_again(
    demands: list[Demand], actors: set[int], current: dict[int, Seat]
) -> None:
    names = [f"actor-{number}" for number in actors]
    seats = plan(actors=names, demands=demands, current={f"actor-{number}": seat for number, seat in current.items()})
    assert plan(actors=names, demands=demands, current=seats) == seats
    assert len(set(seats.values())) == len(seats)
    assert set(seats) <= set(names)
