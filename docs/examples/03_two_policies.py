"""3. Two policies in one environment: a wolf that learns by PPO and a hare that learns by DQN, side by side, from the same steps.

    python docs/examples/03_two_policies.py

`policies` maps agents to policies. For several policies of one kind, or one that all agents share, take `multi-ppo`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from rollstream.config import ExperimentSpec, load
from rollstream.envs.multi_agent.toy import Pursuit
from rollstream_cli.inline import run
from rollstream_cli.progress import describe_report

ENVIRONMENT = f"{Pursuit.__module__}:{Pursuit.__name__}"


def main() -> None:
    """Train both for a few rounds."""
    agents = Pursuit().possible_agents
    document = {
        "algorithm": "two-trainer",
        "environment": {"id": ENVIRONMENT},
        "settings": {
            "policies": {"ppo": {"agents": agents[:1]}, "dqn": {"agents": agents[1:]}},
            "dqn": {"min_items": 200},
        },
        "actors": 1,
        "stop": {"env_steps": 8_000},
    }
    spec = load(ExperimentSpec, document, what="experiment")
    print(f"{', '.join(agents[:1])} learns by PPO, {', '.join(agents[1:])} by DQN")
    with tempfile.TemporaryDirectory() as runs:
        summary = run(
            spec, runs_dir=Path(runs), report=lambda report: print(describe_report(report)), allow=(Pursuit.__module__,)
        )
    print(f"{summary['updates']} updates of both, {summary['tables']['replay']['items']:.0f} items in DQN's table")


if __name__ == "__main__":
    main()
