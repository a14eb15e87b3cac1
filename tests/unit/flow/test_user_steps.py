"""Steps of the user: any importable function or small class; in the actors nothing that another process could not name."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from rollstream.errors import ConfigError
from rollstream.flow import ActorFragment, Actors, Description, update
from rollstream.flow.toy import ToyActor
from rollstream.spaces import Batch, Rollout


def counted(rollout: Rollout, *, times: int = 1) -> Batch:
    return Batch(columns={}, env_steps=rollout.env_steps, version=1, newest_version=1, metrics={"times": float(times)})


class Counted:
    """A small class."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self, rollout: Rollout) -> Batch:
        return counted(rollout, times=self.times)

    def method(self, rollout: Rollout) -> Batch:
        return self(rollout)


@pytest.mark.parametrize(
    ("step", "name", "times"),
    [
        (counted, "counted", 1),
        (Counted(2), "Counted", 2),
        (Counted(3).method, "Counted.method", 3),
        (partial(counted, times=4), "partial", 4),
    ],
)
def test_functions_objects_methods_and_partials_run_in_the_actors(step: Any, name: str, times: int) -> None:
    flow = Description(Actors().rollouts(steps=2).for_each(step).gather_async())
    assert flow.nodes[1].name == name
    made = ActorFragment(flow, ToyActor()).run_once("gather_async")
    assert made is not None
    assert made.metrics == {"times": float(times)}


def refused() -> dict[str, Any]:
    def local(rollout: Any) -> Any:
        return rollout

    class Local:
        def __call__(self, rollout: Any) -> Any:
            return rollout

    return {"lambda": lambda rollout: rollout, "local": local, "Local": Local(), "partial": partial(local)}


@pytest.mark.parametrize("kind", ["lambda", "local", "Local", "partial"])
def test_what_another_process_cannot_import_is_refused_in_the_actors_with_the_reason(kind: str) -> None:
    step = refused()[kind]
    shards = Actors().rollouts(steps=2)
    reason = r"in the actors was given .*refused.<locals>.*, which an actor's process cannot import \(.*test_user_steps.py:\d+\)"
    for add in (shards.for_each, shards.filter):
        with pytest.raises(ConfigError, match=reason):
            add(step)


def test_the_same_is_welcome_in_the_learner(rig: Any, batches: Any) -> None:
    for step in refused().values():
        assert len(list(rig.run(lambda stream, step=step: stream.for_each(step).for_each(update()), batches(2)))) == 2
