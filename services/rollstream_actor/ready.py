"""What an actor's process costs before it serves anyone: its imports, environments and a policy that has acted once.

`python -m rollstream_actor.ready` prints seconds since the start of the process and resident MiB, as JSON; for benchmarks.
"""

from __future__ import annotations

import json

__all__ = ["main"]


def main() -> dict[str, float]:
    """Load what `python -m rollstream_actor` loads, then act in CartPole-v1 once, without Redis."""
    import psutil

    import rollstream_actor.wiring  # noqa: F401
    from rollstream.algorithms import make_agent
    from rollstream.clock import SystemClock
    from rollstream.config import EnvironmentSpec
    from rollstream.envs import make_environment
    from rollstream.graph import build_acting
    from rollstream.seeding import child_generator

    environment = make_environment(EnvironmentSpec(id="CartPole-v1"), envs=8, seed=0, allow=())
    leaves = {"observation": environment.observation_leaves, "actions": environment.action_leaves}
    acting = build_acting(make_agent("ppo", {}, **leaves).policy, batch=8)
    acting.load(acting.layout.init(0))
    acting.act(environment.reset(), child_generator(0, "bench", "actor"))
    process = psutil.Process()
    return {
        "ready_s": SystemClock().wall_s() - process.create_time(),
        "rss_mb": process.memory_info().rss / 2**20,
    }


if __name__ == "__main__":
    print(json.dumps(main()))
