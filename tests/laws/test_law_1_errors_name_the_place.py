"""Law 1: an error names operator, file and line, and actor, and ends in the user's own frame, from wherever it comes.

RLlib Flow: 65 lines of traceback, 23 frames of machinery; a loss that raises ends as "Dequeue `check()` returned False!", its cause
lost; an environment that raises ends as a normal result after 62 s.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from rollstream.errors import FlowError
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    Queue,
    Runner,
    Stream,
    TableHandle,
    describe_error,
    store_into,
    union,
    update,
)
from rollstream.flow.toy import ToyActor, ToyEdge, ToyLearner, ToyTable
from rollstream.spaces import Batch, Rollout

REPLAY = TableHandle(name="replay")
ROBOTS = """
import gymnasium

class Gripper(gymnasium.Wrapper):
    def __init__(self):
        super().__init__(gymnasium.make("CartPole-v1"))
        self.count = 0

    def step(self, action):
        self.count += 1
        if self.count > 100:
            raise ValueError("the gripper is stuck")
        return self.env.step(action)
"""


def as_batch(rollout: Rollout) -> Batch:
    return Batch(columns={}, env_steps=rollout.env_steps, version=rollout.version, newest_version=rollout.version)


def broken_step(item: Any) -> Any:
    raise KeyError("the user's own words")


class BrokenLoss(ToyLearner):
    """A learner whose loss raises, deep inside what `update` calls."""

    def learn(self, batch: Batch, *, policy: str = "") -> Batch:
        return broken_step(batch)  # type: ignore[no-any-return]


def in_the_actor() -> Stream[Any]:
    return Actors().rollouts(steps=2).for_each(broken_step, name="failing").gather_async()


def in_the_learner() -> Stream[Any]:
    return Actors().rollouts(steps=2).for_each(as_batch).gather_async().for_each(broken_step, name="failing")


def in_the_loss() -> Stream[Any]:
    return Actors().rollouts(steps=2).for_each(as_batch).gather_async().for_each(update(), name="failing")


def in_a_prefetch() -> Stream[Any]:
    return in_the_learner().prefetch(2).for_each(update())


def in_a_background_branch() -> Stream[Any]:
    learn = REPLAY.samples(batch_items=2).for_each(update())
    return union(in_the_learner(), learn, emit=learn)


def behind_a_queue() -> Stream[Any]:
    queue: Queue[Any] = Queue(name="train", bound_items=2)
    drained = queue.dequeue().for_each(broken_step, name="failing")
    stream = Actors().rollouts(steps=2).for_each(as_batch).gather_async().enqueue(queue)
    return union(stream, drained, emit=stream)


PLACES: dict[str, tuple[Callable[[], Stream[Any]], type[ToyLearner], str]] = {
    "a step in the actor": (in_the_actor, ToyLearner, "actor-7"),
    "a step in the learner": (in_the_learner, ToyLearner, ""),
    "the loss": (in_the_loss, BrokenLoss, ""),
    "behind a prefetch": (in_a_prefetch, ToyLearner, ""),
    "a background branch": (in_a_background_branch, ToyLearner, ""),
    "behind a queue": (behind_a_queue, ToyLearner, ""),
}


def pulled(build: Callable[[], Stream[Any]], learner_type: type[ToyLearner], *, inline: bool) -> FlowError:
    """What the puller of the flow sees."""
    flow = Description(build())
    table = ToyTable(min_items=10**9)
    learner = learner_type(tables={"replay": table})
    actor = ToyActor(actor="actor-7", tables={"replay": table})
    fragment = ActorFragment(flow, actor)
    if inline or (flow.edges[0].chain[-1].step is not None and flow.edges[0].chain[-1].name == "failing"):
        edges = InlineEdges([fragment])
        learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    else:
        edge = ToyEdge(in_flight=8)
        edge.join("actor-7")
        for _ in range(4):
            batch = fragment.run_once(flow.edges[0].name)
            assert batch is not None
            edge.send(batch)
        learner.edges = lambda name, in_flight: edge
    with pytest.raises(FlowError) as caught, Runner(flow, learner, inline=inline) as runner:
        for _ in range(100):
            next(runner)
    return caught.value


@pytest.mark.parametrize("inline", [False, True], ids=["threads", "inline"])
@pytest.mark.parametrize("place", PLACES)
def test_an_error_names_operator_place_and_actor_and_ends_in_the_users_frame(place: str, inline: bool) -> None:
    build, learner_type, actor = PLACES[place]
    error = pulled(build, learner_type, inline=inline)
    where = f"actor {actor!r}" if actor else "the learner"
    assert str(error).startswith(f"operator 'failing' in {where} ({__file__}:{error.line}) failed: KeyError")
    assert (error.operator, error.file, error.actor) == ("failing", __file__, actor)
    line = linecache.getline(error.file, error.line)
    assert 'name="failing"' in line
    cause = error.__cause__
    assert isinstance(cause, KeyError)
    frames = [frame.name for frame in traceback.extract_tb(cause.__traceback__)]
    assert frames[-1] == "broken_step"
    told = "".join(traceback.format_exception(error))
    assert told.count("/flow/operators/") == 0, "no frame of our operators stands between"


@pytest.mark.parametrize("place", PLACES)
def test_another_process_is_told_the_same(place: str) -> None:
    build, learner_type, actor = PLACES[place]
    text = describe_error(pulled(build, learner_type, inline=True))
    assert (text.operator, text.file, text.actor) == ("failing", __file__, actor)
    last = [line for line in text.traceback.splitlines() if line.startswith("  File ")][-1]
    assert last.endswith("in broken_step")
    assert text.to_error().__notes__[0].splitlines()[-1] == 'KeyError: "the user\'s own words"'


def test_stored_rows_do_not_hide_where_an_actor_failed() -> None:
    def build() -> Stream[Any]:
        return Actors().rollouts(steps=2).for_each(broken_step, name="failing").for_each(store_into(REPLAY, 1)).gather_async()

    assert pulled(build, ToyLearner, inline=True).operator == "failing"


def test_an_environment_that_raises_ends_the_command_with_its_own_frame_last(shell: Any) -> None:
    (shell.directory / "robots.py").write_text(ROBOTS)
    done = shell.run("train", "ppo", "--env", "robots:Gripper", "--inline", "--set", "rollout_steps=64", "--envs-per-actor", "4")
    assert done.returncode == 1
    first, *rest = done.stderr.split("error: ", 1)[1].splitlines()
    assert "operator 'rollouts' in actor 'actor-0' (" in first
    assert "flow.py:" in first
    assert "the gripper is stuck" in first
    frames = [line for line in rest if line.strip().startswith("File ")]
    assert frames[-1].strip().endswith('robots.py", line 12, in step')
