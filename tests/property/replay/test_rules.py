"""Item rules against a model that walks over whole episodes, for any stream of rows, cut into flushes and chunks in any way."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.replay import Pattern, condition, step
from rollstream.replay.conditions import COMPARISONS
from rollstream.replay.open_rows import OpenRows
from rollstream.replay.rules import EachRow, Episode, NStep, Sequence
from rollstream.spaces import Flag

DTYPE = np.dtype([("flags", "u1"), ("version", "<u4"), ("value", "<i4"), ("data", "u1")])
ENVIRONMENTS = 3


@dataclass(frozen=True, slots=True, order=True)
class Item:
    env: int
    first: int
    core: int
    last: int
    rule: int = 0


def model(rule: Any, env: int, episode: range, flags: list[int], number: int) -> list[Item]:
    """Items of one whole episode, whose last row is its final observation (or what there is of it), row by row."""
    first, last = episode[0], episode[-1]
    steps = last - first

    def item(core: int, end: int, lead: int) -> Item:
        return Item(env, max(first, core - lead), core, end, number)

    if isinstance(rule, EachRow):
        return [item(row, row, rule.history) for row in episode if not flags[row] & Flag.FINAL]
    if isinstance(rule, Pattern):
        return applied(rule, env, episode, flags, number)

    if isinstance(rule, NStep):
        return [item(row, min(row + rule.steps, last), rule.history) for row in range(first, last)]
    if isinstance(rule, Episode):
        rule = Sequence(rule.max_length, rule.max_length, history=rule.history)
    lead = rule.burn_in + rule.history
    starts = list(range(first, last, rule.stride))
    whole = [row for row in starts if row + rule.length <= last]
    items = [item(row, row + rule.length, lead) for row in whole]
    covered = {step for row in whole for step in range(row, row + rule.length)}
    begin = whole[-1] + rule.stride if whole else first
    left_out = steps > 0 and (last - 1) not in covered and begin < last
    if left_out and rule.tail == "short":
        items.append(item(begin, last, lead))
    if left_out and rule.tail == "aligned":
        items.append(item(max(first, last - rule.length), last, lead))
    return items


def episodes_of(flags: list[int]) -> list[range]:
    """Rows of each episode of one environment: FINAL ends one, FIRST begins one, also when the one before had no end."""
    starts = [row for row, flag in enumerate(flags) if row == 0 or flag & Flag.FIRST or flags[row - 1] & Flag.FINAL]
    return [range(start, end) for start, end in itertools.pairwise([*starts, len(flags)])]


def applied(pattern: Pattern, env: int, episode: range, flags: list[int], number: int) -> list[Item]:
    """Items of a pattern, step by step as an actor would see them."""
    acting = [row for row in episode if not (pattern.acts and flags[row] & Flag.FINAL)]
    items = []
    since = 0
    for row in acting:
        since += 1
        known = {
            "step_index": row - episode[0],
            "buffer_length": row - episode[0] + 1,
            "steps_since_applied": since,
            "is_end_episode": row == acting[-1],
            "data": row % 3,
        }
        enough = known["buffer_length"] >= pattern.rows_needed
        holds = [
            COMPARISONS[one.comparison](known[one.kind] % one.modulo if one.modulo else known[one.kind], one.value)
            for one in pattern.conditions
        ]
        if enough and all(holds):
            since = 0
            core = row + 1 - pattern.rows_needed
            items.append(Item(env, max(episode[0], core - pattern.history), core, row + 1 + pattern.newest, number))
    return items


def expected(rule: Any, number: int, environments: list[list[int]]) -> list[Item]:
    return [
        item
        for env, flags in enumerate(environments)
        for episode in episodes_of(flags)
        for item in model(rule, env, episode, flags, number)
    ]


leads = st.integers(0, 3)
rules = st.one_of(
    st.builds(NStep, st.integers(1, 4), history=leads),
    st.builds(
        Sequence,
        length=st.integers(1, 5),
        stride=st.integers(1, 6),
        burn_in=leads,
        tail=st.sampled_from(["short", "aligned", "drop"]),
        history=leads,
    ),
    st.builds(Episode, st.integers(1, 6), history=leads),
    st.builds(EachRow, history=leads),
    st.builds(
        Pattern,
        st.dictionaries(
            st.sampled_from(["one", "two"]),
            st.builds(
                lambda column, start, stop: step[column][start - stop : -stop or None],
                st.sampled_from(["observation", "action"]),
                st.integers(-4, -1),
                st.integers(0, 2),
            ),
            min_size=1,
        ),
        conditions=st.lists(
            st.one_of(
                st.just(condition.is_end_episode == True),  # noqa: E712
                st.builds(lambda least: condition.steps_since_applied >= least, st.integers(1, 4)),
                st.builds(lambda period: condition.steps_since_applied % period == 0, st.integers(1, 3)),
                st.builds(lambda period: condition.step_index % period == 0, st.integers(1, 3)),
                st.builds(lambda most: condition.step_index < most, st.integers(1, 5)),
                st.builds(lambda least: condition.buffer_length > least, st.integers(0, 3)),
                st.builds(lambda value: condition.data("data") != value, st.integers(0, 2)),
            ),
            max_size=3,
        ),
        history=leads,
    ),
)


@st.composite
def streams(draw: Any) -> list[list[int]]:
    """Flags of each environment's rows: episodes with and without a final row, the last one mostly still open."""
    environments = []
    for _ in range(ENVIRONMENTS):
        flags: list[int] = []
        for length, final in draw(st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0, 2, 4])), max_size=5)):
            flags += [int(Flag.FIRST), *[0] * (length - 1)]
            if final:
                flags.append(int(Flag.FINAL) | final)
        environments.append(flags)
    return environments


@settings(max_examples=400, deadline=None)
@given(
    stream=streams(),
    chosen=st.lists(rules, min_size=1, max_size=3),
    chunk_rows=st.integers(1, 4),
    pieces=st.lists(st.tuples(*[st.integers(0, 6)] * ENVIRONMENTS), max_size=12),
    retried=st.booleans(),
    telling=st.booleans(),
    keep_rows=st.integers(0, 4),
)
def test_items_are_those_of_whole_episodes_however_the_rows_are_cut(
    *,
    stream: list[list[int]],
    chosen: list[Any],
    chunk_rows: int,
    pieces: list[tuple[int, ...]],
    retried: bool,
    telling: bool,
    keep_rows: int,
) -> None:
    state = OpenRows(DTYPE, environments=ENVIRONMENTS, rule=chosen, chunk_rows=chunk_rows, keep_rows=keep_rows)
    at = [0] * ENVIRONMENTS
    made: list[Item] = []
    keep = np.zeros(ENVIRONMENTS, np.int64)
    stored: list[list[int]] = [[] for _ in range(ENVIRONMENTS)]
    starts: set[tuple[int, int]] = set()
    for piece in [*pieces, (10_000,) * ENVIRONMENTS, None]:
        parts = [stream[env][at[env] : at[env] + count] for env, count in enumerate(piece or (0,) * ENVIRONMENTS)]
        rows = np.zeros(sum(map(len, parts)), DTYPE)
        rows["flags"] = [flag for part in parts for flag in part]
        rows["value"] = [at[env] + row for env, part in enumerate(parts) for row in range(len(part))]
        rows["version"] = rows["value"] + 7
        rows["data"] = rows["value"] % 3
        at = [start + len(part) for start, part in zip(at, parts, strict=True)]
        offsets = np.cumsum([0, *map(len, parts)])
        over = np.array([telling and flags[row : row + 1] == [Flag.FIRST] for flags, row in zip(stream, at, strict=True)])
        if retried:
            state.cut(rows, offsets, closing=piece is None, over=over)
        cut = state.cut(rows, offsets, closing=piece is None, over=over)
        items = cut.items
        end = items.start.astype(int) + items.length
        assert (end <= cut.end.astype(int)[items.env]).all(), "an item never points at rows that are not there"
        assert (items.start.astype(int) >= keep[items.env]).all(), "nor at rows that were said to be done with"
        assert (cut.keep <= cut.end).all()
        assert items.version.tolist() == (end - 1 + 7).tolist()
        lead = np.zeros(len(items), np.uint16) if items.lead is None else items.lead
        for env, start, core, last, rule in zip(
            items.env.tolist(),
            items.start.tolist(),
            (items.start + lead).tolist(),
            (end - 1).tolist(),
            items.rule.tolist(),
            strict=True,
        ):
            made.append(Item(env, int(start), int(core), last, rule))
        for env, number, payload in zip(cut.chunk_env.tolist(), cut.chunk_no.tolist(), cut.payload, strict=True):
            assert number * chunk_rows == len(stored[env])
            stored[env] += payload.view(DTYPE)["value"].tolist()
        starts |= set(zip(cut.episode_env.tolist(), cut.episode_start.tolist(), strict=True))
        keep = np.maximum(keep, cut.keep.astype(np.int64))
        state.advance(cut)
    assert sorted(made) == sorted(one for number, rule in enumerate(chosen) for one in expected(rule, number, stream))
    for env, flags in enumerate(stream):
        assert stored[env][: len(flags)] == list(range(len(flags)))
    firsts = {(env, row) for env, flags in enumerate(stream) for row, flag in enumerate(flags) if flag & Flag.FIRST}
    assert {(env, int(row)) for env, row in starts} == firsts
