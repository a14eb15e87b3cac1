"""Errors name operator, file and line, and actor, and carry the user's exception unchanged."""

from __future__ import annotations

import traceback
from typing import Any

import pytest

from rollstream.errors import EnvironmentFault, FlowError, LeaseLost, StoreUnavailable
from rollstream.flow import (
    ActorFragment,
    Actors,
    Description,
    InlineEdges,
    Runner,
    Stream,
    describe_error,
    starting_environments,
    update,
)
from rollstream.flow.toy import ToyActor, ToyLearner
from rollstream.spaces import Batch


def users_loss(batch: Batch) -> Batch:
    raise ValueError("loss is a banana")


def failing_step(rollout: Any) -> Any:
    raise KeyError("value")


def as_text(rollout: Any) -> Any:
    return "text"


def frames_of(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


@pytest.mark.parametrize("place", ["here", "prefetch", "union"])
def test_the_cause_has_the_users_own_traceback_from_any_thread(rig: Any, batches: Any, place: str) -> None:
    def build(stream: Stream[Any]) -> Stream[Any]:
        failing = stream.for_each(users_loss)
        if place == "prefetch":
            return failing.prefetch(2)
        if place == "union":
            from rollstream.flow import union

            first, second = stream.duplicate(2)
            return union(first.for_each(users_loss), second)
        return failing

    with pytest.raises(FlowError) as caught:
        list(rig.run(build, batches(3)))
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert frames_of(cause) == ["users_loss"]
    assert caught.value.operator == "users_loss"
    assert caught.value.file == __file__
    assert caught.value.line > 0
    assert str(caught.value) == (
        f"operator 'users_loss' in the learner ({__file__}:{caught.value.line}) failed: ValueError: loss is a banana"
    )


def test_no_frames_of_the_machinery_stand_between_the_caller_and_the_cause(rig: Any, batches: Any) -> None:
    build = lambda stream: stream.for_each(users_loss).take(3).window(items=1).report(every_s=0)  # noqa: E731
    runner = rig.run(build, batches(3))
    with pytest.raises(FlowError) as caught:
        next(runner)
    told = "".join(traceback.format_exception(caught.value))
    assert told.count("rollstream/flow/") == 1
    assert "users_loss" in told
    assert "The above exception was the direct cause" in told


def test_an_error_in_an_actors_step_names_the_actor() -> None:
    flow = Description(Actors().rollouts(steps=2).for_each(failing_step).gather_async())
    fragment = ActorFragment(flow, ToyActor(actor="actor-7"))
    with pytest.raises(FlowError, match="in actor 'actor-7'") as caught:
        fragment.run_once("gather_async")
    assert caught.value.actor == "actor-7"
    assert frames_of(caught.value.__cause__) == ["failing_step"]  # type: ignore[arg-type]


def test_an_environment_that_fails_is_told_with_its_actor_and_its_own_cause() -> None:
    class Broken(ToyActor):
        def collect(self, *, steps: int, pull: bool = True) -> Any:
            try:
                raise ZeroDivisionError("physics")
            except ZeroDivisionError as error:
                raise EnvironmentFault("environment 0 raised ZeroDivisionError: physics") from error

    flow = Description(Actors().rollouts(steps=2).for_each(users_loss).gather_async())
    with pytest.raises(FlowError) as caught:
        ActorFragment(flow, Broken()).run_once("gather_async")
    assert isinstance(caught.value.__cause__, EnvironmentFault)
    assert caught.value.operator == "rollouts"
    text = describe_error(caught.value)
    assert "ZeroDivisionError: physics" in text.traceback
    assert text.actor == "actor-0"


def test_inline_an_actors_error_reaches_the_puller_as_it_was() -> None:
    flow = Description(Actors().rollouts(steps=2).for_each(failing_step).gather_async().for_each(update()))
    learner = ToyLearner()
    edges = InlineEdges([ActorFragment(flow, ToyActor(actor="actor-3"))])
    learner.edges = lambda name, in_flight: edges.source(name, in_flight=in_flight)
    with pytest.raises(FlowError, match="operator 'failing_step' in actor 'actor-3'"):
        next(Runner(flow, learner, inline=True))


@pytest.mark.parametrize("error", [StoreUnavailable("redis is away"), LeaseLost("another learner has it")])
def test_errors_of_the_store_keep_their_type_and_get_a_note_with_the_place(rig: Any, batches: Any, error: Exception) -> None:
    def failing(batch: Batch) -> Batch:
        raise error

    with pytest.raises(type(error)) as caught:
        list(rig.run(lambda stream: stream.for_each(failing), batches(1)))
    assert caught.value is error
    assert "in operator 'failing' of the flow, in the learner" in caught.value.__notes__[0]


def test_an_error_as_text_can_be_raised_in_another_process(rig: Any, batches: Any) -> None:
    with pytest.raises(FlowError) as caught:
        list(rig.run(lambda stream: stream.for_each(users_loss), batches(1)))
    text = describe_error(caught.value)
    assert (text.operator, text.file, text.line, text.actor) == ("users_loss", __file__, caught.value.line, "")
    assert text.traceback.startswith("Traceback (most recent call last):")
    assert 'in users_loss\n    raise ValueError("loss is a banana")' in text.traceback
    assert "rollstream/flow/" not in text.traceback
    again = text.to_error()
    assert str(again) == str(caught.value)
    assert "loss is a banana" in again.__notes__[0]


def test_an_error_outside_a_flow_is_told_without_a_place() -> None:
    text = describe_error(RuntimeError("elsewhere"))
    assert (text.operator, text.line, text.message) == ("", 0, "RuntimeError: elsewhere")
    assert text.to_error().operator == ""


def test_an_error_outside_a_flow_may_be_told_with_a_place() -> None:
    assert describe_error(RuntimeError("elsewhere"), where="the learner").message == "in the learner: RuntimeError: elsewhere"
    assert describe_error(EnvironmentFault("it broke"), where="actor 'a'").message == "in actor 'a': it broke"


def test_what_fails_while_environments_start_is_blamed_on_the_rollouts() -> None:
    flow = Description(Actors().rollouts(steps=2).for_each(users_loss).gather_async())
    message = "operator 'rollouts' in actor 'actor-1' .* failed: cannot reset"
    with pytest.raises(FlowError, match=message) as caught, starting_environments(flow, actor="actor-1"):
        raise EnvironmentFault("cannot reset")
    assert isinstance(caught.value.__cause__, EnvironmentFault)


def test_a_step_that_changes_env_steps_is_refused(rig: Any, batches: Any, batch_of: Any) -> None:
    with pytest.raises(FlowError, match="turned an item of 4 env_steps into one of 2; counters would not add up"):
        list(rig.run(lambda stream: stream.for_each(lambda batch: batch_of(1, env_steps=2)), batches(1)))


def test_an_edge_sends_batches_only() -> None:
    flow = Description(Actors().rollouts(steps=2).for_each(as_text).gather_async())
    with pytest.raises(FlowError, match="gave a str, but an edge sends batches"):
        ActorFragment(flow, ToyActor()).run_once("gather_async")


def test_flattening_what_has_no_members_names_the_place(rig: Any, batches: Any) -> None:
    with pytest.raises(FlowError, match="operator 'flatten' .* TypeError"):
        list(rig.run(lambda stream: stream.flatten(), batches(1)))


def test_batch_joins_batches_only(rig: Any, batches: Any) -> None:
    with pytest.raises(FlowError, match="operator 'batch' .* joins batches, got a str"):
        list(rig.run(lambda stream: stream.for_each(lambda batch: "x").batch(steps=1), batches(1)))
