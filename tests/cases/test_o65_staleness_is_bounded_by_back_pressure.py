"""O65 Trinity-RFT PR#382: with a slow trainer neither the queue nor the age of what is trained on may grow."""

from __future__ import annotations

import threading

from rollstream.flow import ActorFragment, Actors, Description, LearnerHandle, Runner, advantages
from rollstream.flow.toy import ToyActor, ToyEdge, ToyLearner

IN_FLIGHT = 2
ACTORS = 3


def test_o65_with_a_slow_trainer_lag_stays_below_the_messages_in_flight() -> None:
    handle = LearnerHandle()
    flow = Description(
        Actors(count=ACTORS)
        .rollouts(steps=2)
        .for_each(advantages(discount=0.9, gae_lambda=0.9))
        .gather_async(in_flight=IN_FLIGHT)
        .for_each(handle.update())
        .for_each(handle.publish())
        .report(every_s=0)
    )
    edge = ToyEdge(in_flight=IN_FLIGHT)
    learner = ToyLearner(edges=lambda name, in_flight: edge)
    fragments = [ActorFragment(flow, ToyActor(actor=f"actor-{n}", version=learner.version)) for n in range(ACTORS)]

    def act(fragment: ActorFragment) -> None:
        while edge.wait_for_credit(fragment.actor):
            batch = fragment.run_once("gather_async")
            assert batch is not None
            edge.send(batch)

    threads = [threading.Thread(target=act, args=(fragment,)) for fragment in fragments]
    for fragment in fragments:
        edge.join(fragment.actor)
    for thread in threads:
        thread.start()
    lags = []
    with Runner(flow, learner) as runner:
        for _ in range(40):
            report = next(runner)
            lags.append(report.max_lag)
            learner.stop.wait(0.001)
    for fragment in fragments:
        edge.leave(fragment.actor)
    for thread in threads:
        thread.join(10)
    assert max(lag for lag in lags if lag is not None) < 2 * IN_FLIGHT * ACTORS
    assert learner.counters.value("env_steps_dropped") == 0
