"""adapt: phases of a task, which weights act in them, what is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from rollstream.errors import ConfigError, FlowError
from rollstream.flow import ActorFragment, Actors, Description
from rollstream.flow.steps import adapt
from rollstream.flow.toy import ToyActor


class Adding:
    """An agent whose gradient step adds 1; it remembers what it was asked to adapt."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def adaptation(self) -> Adding:
        return self

    def adapted(self, columns: Mapping[str, Any], tensors: Mapping[str, Any]) -> Mapping[str, Any]:
        self.seen.append((float(tensors["w"][0]), len(columns["advantage"])))
        return {"w": tensors["w"] + 1}


class Recording(ToyActor):
    """Remembers which weights acted, and for which task."""

    def __init__(self, agent: Any) -> None:
        super().__init__(agent=agent, environments=2, episode_steps=3)
        self.acted: list[tuple[float, int]] = []

    def collect(self, *, steps: int, pull: bool = True) -> Any:
        self.acted.append((float(self.tensors()["w"][0]), self.options["task"]))
        return super().collect(steps=steps, pull=pull)


def run(side: ToyActor, *, tasks: int = 2, inner_steps: int = 2) -> Any:
    step = adapt(tasks=tasks, rollout_steps=3, inner_steps=inner_steps, discount=0.9, gae_lambda=1.0)
    return ActorFragment(Description(Actors().generate(step).gather_async()), side).run_once("gather_async")


def test_every_task_begins_with_the_pulled_weights_and_steps_between_its_phases() -> None:
    agent = Adding()
    side = Recording(agent)
    run(side)
    assert [weight for weight, _ in side.acted] == [0, 1, 2, 0, 1, 2]
    assert [weight for weight, _ in agent.seen] == [0, 1, 0, 1]
    tasks = [task for _, task in side.acted]
    assert tasks[0] == tasks[1] == tasks[2] != tasks[3] == tasks[4] == tasks[5]


def test_the_message_has_all_phases_and_the_episodes_of_the_last() -> None:
    batch = run(Recording(Adding()))
    assert batch.env_steps == 2 * 3 * 6  # tasks, phases, steps
    assert batch.rows == 36
    assert batch.columns["phase"].reshape(6, 6).tolist() == [[0] * 6, [1] * 6, [2] * 6] * 2
    assert len(set(batch.columns["task"].tolist())) == 2
    assert len(batch.episodes) == 4  # 2 environments, 2 tasks
    assert batch.columns["reward"].tolist() == [1.0] * 36


def test_advantages_are_standardized_in_each_phase_of_each_task() -> None:
    advantage = run(Recording(Adding())).columns["advantage"].reshape(6, 6)
    np.testing.assert_allclose(advantage.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(advantage.std(axis=1), 1, rtol=1e-5)


def test_bad_settings_and_agents_are_refused() -> None:
    with pytest.raises(ConfigError, match="inner_steps of adapt must be >= 1, got 0"):
        adapt(tasks=1, rollout_steps=1, inner_steps=0, discount=0.9, gae_lambda=1.0)
    with pytest.raises((ConfigError, FlowError), match=r"adapt needs an agent with a method adaptation\(\), object has none"):
        run(ToyActor(agent=object()))
