"""What a flow costs that has nothing to do: an as-ready union whose branches wait for messages that do not come."""

from __future__ import annotations

import threading
from typing import Any

from rollstream.clock import Clock
from rollstream.flow import Actors, LearnerHandle, Runner, union
from rollstream.flow.steps import standardize
from rollstream.flow.toy import ToyLearner
from rollstream.spaces import Batch
from rollstream_learner.bench.timing import cpu_s

__all__ = ["measure_idle"]

DISCOUNT = 0.99


class _Silence:
    """An edge on which nothing comes; waits as long as it may, as a blocking read does."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def next(self, timeout_s: float) -> Batch | None:
        self._stop.wait(timeout_s)
        return None

    def at_hand(self) -> Batch | None:
        return None

    def ack(self, *batches: Batch) -> None:
        pass

    def live_actors(self) -> set[str]:
        return {"actor-0", "actor-1"}

    def ready(self) -> bool:
        return False


def measure_idle(*, seconds: float, clock: Clock) -> dict[str, Any]:
    """Cores that this process uses while three branches wait for `seconds`: two that gather, one behind a barrier."""
    actors, learner = Actors(count=2), LearnerHandle()
    branches = [
        actors.rollouts(steps=8, name=f"rollouts-{name}").for_each(_advantages(), name=f"advantages-{name}") for name in "abc"
    ]
    gathered = [
        branches[0].gather_async(in_flight=2, name="first"),
        branches[1].gather_async(in_flight=2, name="second"),
        branches[2].gather_sync(name="third"),
    ]
    ready = [stream.for_each(standardize("advantage"), name=f"standardize-{number}") for number, stream in enumerate(gathered)]
    flow = union(*ready, mode="as_ready", emit=ready[0]).for_each(learner.update())
    stop = threading.Event()
    side = ToyLearner(edges=lambda name, in_flight: _Silence(stop), clock=clock)
    with Runner(flow, side) as runner:
        pulling = threading.Thread(target=lambda: list(runner), name="idle flow", daemon=True)
        pulling.start()
        stop.wait(0.5)
        start_s, start_cpu_s = clock.monotonic_s(), cpu_s()
        stop.wait(seconds)
        idle_s, used_s = clock.monotonic_s() - start_s, cpu_s() - start_cpu_s
        side.stop.set()
        stop.set()
        pulling.join(timeout=10.0)
    return {"branches": len(ready), "seconds": round(idle_s, 2), "cores": round(used_s / idle_s, 5)}


def _advantages() -> Any:
    from rollstream.flow.steps import advantages

    return advantages(discount=DISCOUNT, gae_lambda=1.0)
