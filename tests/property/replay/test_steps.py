"""Steps against a model with a list of rows for each environment, for any sequence of calls."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rollstream.replay.step_buffer import StepBuffer
from rollstream.spaces import Column, Flag, RowSpec

ROWS = RowSpec((Column(name="observation", dtype="<i4"), Column(name="action", dtype="<i4")))
ENVIRONMENTS = 3
Row = tuple[int, int, int, int]
"""Flags, version, observation, action."""

everybody = st.just(tuple(range(ENVIRONMENTS)))
some = st.sets(st.integers(0, ENVIRONMENTS - 1), min_size=1).map(lambda chosen: tuple(sorted(chosen)))
calls = st.one_of(
    st.tuples(st.just("step"), st.one_of(everybody, some)),
    st.tuples(st.just("observe"), some),
    st.tuples(st.just("end"), some, st.booleans(), st.booleans()),
    st.tuples(st.just("take")),
)


class Model:
    """One environment."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.begins = True
        self.observed: int | None = None

    def add(self, flags: int, version: int, observation: int, action: int) -> None:
        self.rows.append((flags | (int(Flag.FIRST) if self.begins else 0), version, observation, action))
        self.begins, self.observed = False, None

    def end(self, *, terminated: bool, final: int | None, version: int) -> None:
        running = not self.begins or self.observed is not None
        known = final if final is not None else self.observed
        if running and (known is not None or terminated):
            ending = Flag.FINAL | (Flag.TERMINATED if terminated else Flag.TRUNCATED)
            self.add(int(ending), version, known or 0, 0)
        if running:
            self.begins = True


@settings(max_examples=300, deadline=None)
@given(script=st.lists(calls, max_size=30))
def test_rows_are_those_of_each_environment_alone(script: list[Any]) -> None:
    buffer = StepBuffer(ROWS, environments=ENVIRONMENTS, capacity=4)
    models = [Model() for _ in range(ENVIRONMENTS)]
    taken: list[list[Row]] = [[] for _ in range(ENVIRONMENTS)]

    def take() -> None:
        steps = buffer.take()
        for env in range(ENVIRONMENTS):
            part = steps.rows[steps.offsets[env] : steps.offsets[env + 1]]
            taken[env] += [(int(r["flags"]), int(r["version"]), int(r["observation"]), int(r["action"])) for r in part]
        buffer.clear()

    for number, (kind, *arguments) in enumerate(script, start=1):
        if not buffer.has_room(1):
            take()
        if kind == "take":
            take()
            continue
        env = arguments[0]
        values = 100 * number + np.arange(len(env))
        which = None if len(env) == ENVIRONMENTS else np.array(env)
        fresh = [models[one].observed is None for one in env]
        if kind == "step":
            if all(fresh):
                buffer.add({"observation": values, "action": values + 50}, which=which, version=number)
            elif not any(fresh):
                buffer.add({"action": values + 50}, which=which, version=number)
            else:
                continue
            for one, value in zip(env, values.tolist(), strict=True):
                observed = models[one].observed
                models[one].add(0, number, value if observed is None else observed, value + 50)
        elif kind == "observe":
            if not all(fresh):
                continue
            buffer.add_partial({"observation": values}, which=which)
            for one, value in zip(env, values.tolist(), strict=True):
                models[one].observed = value
        else:
            terminated, known = arguments[1:]
            given = known and all(fresh)
            buffer.finish(
                np.array(env),
                terminated=np.full(len(env), terminated),
                final={"observation": values} if given else None,
                version=number,
            )
            for one, value in zip(env, values.tolist(), strict=True):
                models[one].end(terminated=terminated, final=value if given else None, version=number)
        assert buffer.total.tolist() == [len(model.rows) for model in models]
    take()
    assert taken == [model.rows for model in models]
    assert buffer.begins.tolist() == [model.begins for model in models]
