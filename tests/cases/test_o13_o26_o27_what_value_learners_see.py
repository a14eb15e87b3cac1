"""O13, O26, O27 and E: what DQN, Ape-X and R2D2 learn from, from the environment to the columns of an update.

Episodes of 4 steps that a time limit ends, rewards 10 * step + action. A final observation [seed, episode, 4] is bootstrapped from, and no
reward, observation or step of the next episode gets into an item of this one, whatever the autoreset mode. Each item tells its age.
"""

from __future__ import annotations

import numpy as np
import pytest

from rollstream.algorithms.r2d2.sequences import sequence_columns
from rollstream.clock import FakeClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import Collector, make_environment
from rollstream.replay import ActedError, Fifo, MinSize, NStep, Sequence, TableSpec, Uniform, n_step
from rollstream.replay.rules import ItemRule
from rollstream.spaces import Column, Columns, Rollout, RowSpec, row_spec
from rollstream_cli.inline.tables import MemoryTable

TOYS = ["rollstream.envs.toy"]
MODES = ["NextStep", "SameStep", "Disabled"]
DISCOUNT = 0.5
LENGTH = 4
SAMPLES = 600
"""Enough to see each of some twenty items."""


class Acting:
    """Takes action 1 always; its values are q_taken 2 and q_max 8 wherever it is."""

    def act(self, observation: Columns) -> Columns:
        envs = len(next(iter(observation.values())))
        ones = np.ones(envs, np.float32)
        return {
            "action": np.ones(envs, np.int64),
            "q_taken": 2 * ones,
            "q_max": 8 * ones,
            "recurrent.torso": np.zeros((envs, 2), "<f4"),
        }


def collected(mode: str, *, end: str = "truncated", rollouts: int = 3) -> tuple[list[Rollout], RowSpec]:
    """Rollouts of 5 vector steps, acted by versions 1, 2, ..., so that items lie across two of them."""
    spec = EnvironmentSpec(id="rollstream.envs.toy:CountingVector", kwargs={"mode": mode, "lengths": [LENGTH], "end": end})
    environment = make_environment(spec, envs=2, seed=0, allow=TOYS)
    extra = [
        Column(name=name, dtype="<f4", shape=shape) for name, shape in (("q_taken", ()), ("q_max", ()), ("recurrent.torso", (2,)))
    ]
    layout = row_spec(environment.observation_leaves, environment.action_leaves, extra=extra)
    collector = Collector(environment, row_spec=layout, policy=Acting(), clock=FakeClock())
    found = [collector.collect(5, version=number + 1) for number in range(rollouts)]
    environment.close()
    return found, layout


def stored(rollouts: list[Rollout], layout: RowSpec, rule: ItemRule) -> MemoryTable:
    spec = TableSpec(
        name="replay",
        sampler=Uniform(),
        remover=Fifo(),
        limiter=MinSize(min_items=1),
        max_items=100,
        batch_items=1,
        rows=layout.fields,
    )
    table = MemoryTable(spec, experiment="case", seed=0, clock=FakeClock())
    writer = table.writer(rule, environments=2, writer=1)
    for rollout in rollouts:
        writer.append(rollout)
    return table


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("end", ["truncated", "terminated"])
def test_n_step_items_end_with_their_episode_in_every_autoreset_mode(mode: str, end: str) -> None:
    """Rewards of episode e are 100 e + 10 step + 1; n = 3, discount 0.5. Only a truncated episode is bootstrapped from at its end."""
    rollouts, layout = collected(mode, end=end)
    sample = stored(rollouts, layout, NStep(3)).sample(batch_items=SAMPLES, deadline_s=0.0)
    columns = n_step(sample.rows, sample.lengths, discount=DISCOUNT, lead=sample.lead)
    seen = {
        (*begin, *end_, reward, discount)
        for begin, end_, reward, discount in zip(
            columns["observation"][:, 1:].tolist(),
            columns["next_observation"][:, 1:].tolist(),
            columns["reward"].tolist(),
            columns["discount"].tolist(),
            strict=True,
        )
    }
    after = 1.0 if end == "truncated" else 0.0
    for episode in (0, 1):
        r = [100.0 * episode + 10.0 * step + 1.0 for step in range(LENGTH)]
        assert {one for one in seen if one[0] == episode} == {
            (episode, 0, episode, 3, r[0] + 0.5 * r[1] + 0.25 * r[2], 0.125),
            (episode, 1, episode, 4, r[1] + 0.5 * r[2] + 0.25 * r[3], 0.125 * after),
            (episode, 2, episode, 4, r[2] + 0.5 * r[3], 0.25 * after),
            (episode, 3, episode, 4, r[3], 0.5 * after),
        }


@pytest.mark.parametrize("mode", MODES)
def test_sequences_end_with_their_episode_in_every_autoreset_mode(mode: str) -> None:
    """Sequences of 3 steps, one every 2, burn-in of 1: from step 0, and from step 2 the short one that ends with the episode."""
    rollouts, layout = collected(mode)
    table = stored(rollouts, layout, Sequence(3, 2, burn_in=1))
    sample = table.sample(batch_items=SAMPLES, deadline_s=0.0)
    columns = sequence_columns(
        sample, observation=["observation"], action=["action"], burn_in=1, steps=3, n_step=2, discount=DISCOUNT
    )
    first = {}
    for item in np.flatnonzero(columns["observation"][:, 1, 1] == 0):
        first[int(columns["observation"][item, 1, 2])] = {name: column[item].tolist() for name, column in columns.items()}
    assert sorted(first) == [0, 2]
    assert first[0]["reward"] == [1 + 0.5 * 11, 11 + 0.5 * 21, 21]
    assert first[0]["discount"] == [0.25, 0.25, 0.5]
    assert first[0]["first"][1] == 1, "the state is 0 where the episode begins"
    assert first[2]["reward"] == [21 + 0.5 * 31, 31, 0]
    assert first[2]["discount"] == [0.25, 0.5, 0], "a time limit is bootstrapped from"
    assert first[2]["valid"] == [1, 1, 0]
    assert [row[2] for row in first[2]["observation"][:4]] == [1, 2, 3, 4]


@pytest.mark.parametrize(("end", "after"), [("truncated", 8.0), ("terminated", 0.0)])
def test_first_priorities_know_time_limits_too(end: str, after: float) -> None:
    """q_taken is 2 and q_max 8 everywhere: the last item of episode 0 has the error 31 + 0.5 * 8 - 2, or 31 - 2 when it terminated."""
    rollouts, layout = collected("NextStep", end=end)
    table = stored(rollouts, layout, NStep(3, priority=ActedError(DISCOUNT)))
    sample = table.sample(batch_items=SAMPLES, deadline_s=0.0)
    begin = sample.rows["observation"][:, 0, 1:]
    priority = {tuple(key): value for key, value in zip(begin.tolist(), sample.priority.tolist(), strict=True)}
    assert priority[0, 3] == pytest.approx(31 + 0.5 * after - 2)
    assert priority[0, 0] == pytest.approx(1 + 0.5 * 11 + 0.25 * 21 + 0.125 * 8 - 2)


def test_each_sampled_item_tells_its_lag() -> None:
    """Items of three versions, sampled when the learner has published the ninth: the lag is that of the newest row of each."""
    rollouts, layout = collected("SameStep")
    table = stored(rollouts, layout, NStep(1))
    table.learner_version = 9
    sample = table.sample(batch_items=SAMPLES, deadline_s=0.0)
    assert set(sample.version.tolist()) == {1, 2, 3}
    assert sample.lag.tolist() == (9 - sample.version.astype(int)).tolist()
    step = sample.rows["observation"][:, 0]
    acted = sample.rows["version"][:, 0]
    assert set(acted[(step[:, 1] == 0)].tolist()) == {1}, "the first episode was over within the first rollout"
