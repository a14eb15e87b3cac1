"""Without replacement, mixtures and plug-ins."""

from __future__ import annotations

import doctest
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from rollstream.errors import ConfigError, TableError
from rollstream.replay.selector_spec import (
    Fifo,
    LagWeighted,
    Lifo,
    Mixture,
    Plugin,
    Prioritized,
    Sampler,
    Uniform,
    WithoutReplacement,
)
from rollstream.replay.selectors import PassSelector, Selector, make_selector, plugin, register_selector
from rollstream.seeding import child_generator

GENERATOR = child_generator(1, "mixed")


def fill(selector: Selector, slots: list[int], *, first_number: int = 0) -> None:
    numbers = np.arange(first_number, first_number + len(slots))
    selector.insert(np.array(slots), np.linspace(1.0, 2.0, len(slots)), numbers=numbers, versions=np.zeros(len(slots), np.uint32))


def draw(selector: Selector, count: int) -> list[int]:
    return selector.select(count, generator=GENERATOR, uses_left=None).slots.tolist()


# --- without replacement ---------------------------------------------------------------------------------------------


def test_no_item_comes_twice_before_all_came_once() -> None:
    selector = PassSelector(10)
    fill(selector, list(range(10)))
    for _ in range(20):
        assert sorted(draw(selector, 4) + draw(selector, 6)) == list(range(10))


def test_a_batch_may_span_passes() -> None:
    selector = PassSelector(10)
    fill(selector, list(range(10)))
    slots = draw(selector, 7) + draw(selector, 26) + draw(selector, 7)
    for first in range(0, 40, 10):
        assert sorted(slots[first : first + 10]) == list(range(10))


def test_passes_differ_in_their_order() -> None:
    selector = PassSelector(10)
    fill(selector, list(range(10)))
    firsts = np.bincount([draw(selector, 10)[0] for _ in range(4000)], minlength=10)
    assert abs(firsts - 400).max() < 100


def test_new_items_join_the_pass_and_removed_ones_leave_it() -> None:
    selector = PassSelector(10)
    fill(selector, [0, 1, 2, 3, 4, 5])
    came = draw(selector, 3)
    fill(selector, [8, 9], first_number=6)
    gone = [came[0], ({0, 1, 2, 3, 4, 5} - set(came)).pop()]
    selector.remove(np.array(gone))
    rest = draw(selector, 4)
    assert sorted(rest) == sorted(({0, 1, 2, 3, 4, 5, 8, 9} - set(came)) - set(gone))
    assert sorted(draw(selector, 6)) == sorted({0, 1, 2, 3, 4, 5, 8, 9} - set(gone))


def test_who_would_come_next_leaves_first() -> None:
    selector = PassSelector(10)
    fill(selector, list(range(10)))
    came = draw(selector, 7)
    leaving = selector.select_distinct(5, generator=GENERATOR).tolist()
    assert set(leaving[:3]) == set(range(10)) - set(came)
    assert set(leaving[3:]) < set(came)
    assert sorted(draw(selector, 3)) == sorted(leaving[:3])  # naming them has not moved them


# --- mixtures --------------------------------------------------------------------------------------------------------


def test_a_mixture_is_refused_when_a_part_has_no_weight() -> None:
    with pytest.raises(ConfigError, match="weights of a mixture must be > 0, got 0 for fifo"):
        Mixture(parts=((Uniform(), 1.0), (Fifo(), 0.0)))


def test_settings_of_selectors_survive_json() -> None:
    adapter: TypeAdapter[Sampler] = TypeAdapter(Sampler)
    for rule in (
        Mixture(parts=((Prioritized(stratified=True), 0.9), (Plugin(name="x", options={"a": [1]}), 0.1))),
        LagWeighted(half_life_versions=3),
    ):
        assert adapter.validate_json(adapter.dump_json(rule)) == rule


def test_what_two_parts_name_counts_for_both() -> None:
    selector = make_selector(Mixture(parts=((Fifo(), 1.0), (Lifo(), 1.0), (Uniform(), 2.0))), capacity=4)
    fill(selector, [2, 0, 3])
    assert selector.probability(np.array([2, 0, 3])) == pytest.approx([5 / 12, 2 / 12, 5 / 12])
    selector.remove(np.array([0, 3]))
    assert selector.probability(np.array([2])) == pytest.approx([1.0])
    assert selector.min_probability == pytest.approx(1.0)


def test_a_mixture_of_orders_uses_items_up() -> None:
    selector = make_selector(Mixture(parts=((Fifo(), 1.0), (Lifo(), 1.0))), capacity=8)
    fill(selector, list(range(8)))
    drawn = selector.select(4, generator=GENERATOR, uses_left=np.ones(8, np.int32))
    assert 1 <= len(drawn.slots) <= 4
    assert set(drawn.slots.tolist()) <= {0, 1, 2, 3, 4, 5, 6, 7}
    assert (drawn.probability >= 0.5).all()


def test_the_rarest_member_of_a_mixture_of_orders_has_the_smallest_share() -> None:
    selector = make_selector(Mixture(parts=((Fifo(), 3.0), (Lifo(), 1.0))), capacity=4)
    fill(selector, [0, 1, 2])
    assert selector.min_probability == pytest.approx(0.25)


def test_a_restored_mixture_keeps_the_age_of_its_members() -> None:
    rule = Mixture(parts=((WithoutReplacement(), 1.0), (Fifo(), 1.0)))
    selector = make_selector(rule, capacity=6)
    fill(selector, [5, 4, 3, 2, 1, 0])
    draw(selector, 5)
    order = selector.order()
    assert order is not None
    restored = make_selector(rule, capacity=6)
    restored.insert(order, np.ones(6), numbers=5 - order, versions=np.zeros(6, np.uint32))
    restored.resume(selector.facts())
    assert restored.probability(np.arange(6)) == pytest.approx(selector.probability(np.arange(6)))


# --- plug-ins --------------------------------------------------------------------------------------------------------


class Newest:
    """A user's selector: the newest `keep` items, evenly."""

    def __init__(self, capacity: int, *, keep: int = 2) -> None:
        self.keep = keep
        self.number = np.full(capacity, -1)

    def insert(self, slots: np.ndarray, priorities: np.ndarray, *, numbers: np.ndarray, versions: np.ndarray) -> None:
        self.number[slots] = numbers

    def remove(self, slots: np.ndarray) -> None:
        self.number[slots] = -1

    def update(self, slots: np.ndarray, priorities: np.ndarray) -> None:
        return

    def _chosen(self) -> np.ndarray:
        newest = np.argsort(-self.number)[: self.keep]
        return newest[self.number[newest] >= 0]

    def draw(self, count: int, *, generator: np.random.Generator) -> np.ndarray:
        return generator.choice(self._chosen(), count)

    def probability(self, slots: np.ndarray) -> np.ndarray:
        chosen = self._chosen()
        return np.isin(slots, chosen) / len(chosen)


class Wrong(Newest):
    """Answers what its options say."""

    def __init__(self, capacity: int, *, answer: Sequence[float] = (), chance: Sequence[float] = ()) -> None:
        super().__init__(capacity)
        self.answer = np.array(answer)
        self.chance = np.array(chance)

    def draw(self, count: int, *, generator: np.random.Generator) -> np.ndarray:
        return self.answer

    def probability(self, slots: np.ndarray) -> np.ndarray:
        return self.chance if len(self.chance) else super().probability(slots)


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    register_selector("newest", Newest)
    register_selector("wrong", Wrong)


def test_a_plug_in_samples_by_its_rule() -> None:
    selector = make_selector(Plugin(name="newest", options={"keep": 3}), capacity=8)
    fill(selector, [4, 1, 7, 0, 2])
    selection = selector.select(300, generator=GENERATOR, uses_left=None)
    assert set(selection.slots.tolist()) == {7, 0, 2}
    assert selection.probability == pytest.approx(np.full(300, 1 / 3))
    selector.remove(np.array([7]))
    assert set(draw(selector, 100)) == {1, 0, 2}
    assert selector.sampleable == selector.mass == 4
    assert selector.min_probability == 0.0  # not known


def test_a_plug_in_that_never_names_some_items_can_still_empty_a_table() -> None:
    selector = make_selector(Plugin(name="newest"), capacity=8)
    fill(selector, [4, 1, 7, 0, 2])
    leaving = selector.select_distinct(5, generator=GENERATOR).tolist()
    assert set(leaving[:2]) == {0, 2}
    assert sorted(leaving) == [0, 1, 2, 4, 7]


def test_an_unknown_plug_in_is_refused_and_known_ones_are_named() -> None:
    with pytest.raises(ConfigError, match=r"'xyz' is not known here; known: .*newest, .*register it with register_selector"):
        make_selector(Plugin(name="xyz"), capacity=8)


def test_options_that_a_plug_in_does_not_take_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"selector plug-in 'newest' does not take options \{'size': 3\}"):
        make_selector(Plugin(name="newest", options={"size": 3}), capacity=8)


THEIR_MODULE = """
import numpy as np

class Lowest:
    def __init__(self, capacity): self.has = np.zeros(capacity, bool)
    def insert(self, slots, priorities, *, numbers, versions): self.has[slots] = True
    def remove(self, slots): self.has[slots] = False
    def update(self, slots, priorities): pass
    def draw(self, count, *, generator): return np.full(count, self.has.argmax())
    def probability(self, slots): return (slots == self.has.argmax()) * 1.0
"""


def test_an_installed_plug_in_is_found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_selector.py").write_text(THEIR_MODULE)
    metadata = tmp_path / "their_selector-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-selector\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[rollstream.selectors]\nlowest = their_selector:Lowest\n")
    monkeypatch.syspath_prepend(tmp_path)
    selector = make_selector(Plugin(name="lowest"), capacity=5)
    fill(selector, [4, 3])
    assert set(draw(selector, 9)) == {3}
    with pytest.raises(ConfigError, match=r"'lowset' is not known here; known: .*lowest, "):
        make_selector(Plugin(name="lowset"), capacity=5)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0, 0], r"selector plug-in 'wrong': draw must give 3 slots, got int64 \[2\]"),
        ([0.0, 0.0, 0.0], r"draw must give 3 slots, got float64 \[3\]"),
        ([4, 4, 3], "drew a slot that is no member; forget slots in remove"),
        ([4, 4, -1], "drew a slot that is no member"),
        ([4, 4, 99], "drew a slot that is no member"),
        ([4, 2, 2], "drew a slot to which its probability gives 0"),
    ],
)
def test_a_wrong_draw_is_refused(answer: list[float], message: str) -> None:
    selector = make_selector(Plugin(name="wrong", options={"answer": answer}), capacity=8)
    fill(selector, [4, 2, 1, 0])
    with pytest.raises(TableError, match=message):
        selector.select(3, generator=GENERATOR, uses_left=None)


@pytest.mark.parametrize("chance", [[0.5], [0.5, np.nan], [0.5, -0.1], [0.5, 1.1]])
def test_a_wrong_probability_is_refused(chance: list[float]) -> None:
    selector = make_selector(Plugin(name="wrong", options={"chance": chance}), capacity=8)
    fill(selector, [4, 2])
    with pytest.raises(TableError, match="'wrong': probability must give 2 numbers from 0 to 1"):
        selector.probability(np.array([4, 2]))


def test_the_example_of_a_plug_in_runs() -> None:
    outcome = doctest.testmod(plugin)
    assert outcome.attempted > 4
    assert not outcome.failed
