"""Which processes a cell consists of, and with which settings each is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from rollstream_cli.leash import leashed

__all__ = ["ROLES", "CellPlan", "Role", "command_of", "environment_of"]

Role: TypeAlias = Literal["control", "replay", "learner", "actor"]
ROLES: tuple[Role, ...] = ("control", "replay", "learner", "actor")
"""In the order of starting: what takes longest to start goes first."""

ONE_THREAD: dict[str, str] = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
"""Matrices are too small to share: threads of NumPy's BLAS or of torch would only fight over the cores. Who knows better sets them."""
NOT_INHERITED = ("ROLLSTREAM_MEMBER_ID", "ROLLSTREAM_PORT", "ROLLSTREAM_ADVERTISE_URL", "ROLLSTREAM_SHARD")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellPlan:
    """What a cell on this machine is made of."""

    directory: Path
    """Run directory: `server/`, `logs/`, `cell.json`."""
    runs_dir: Path
    """Where the learner writes `<experiment>/`."""
    server_dir: Path
    """Where the embedded server keeps its data and its socket."""
    actors: int
    """Actors at the start; `rs:cell:wanted_actors` changes it."""
    replay_shards: int
    """Shards of the replay service; 0 when no algorithm of the cell uses tables."""
    learners: int = 1
    """Learners: so many experiments run at once."""
    host: str = "127.0.0.1"
    """Address on which control listens."""
    port: int = 0
    """Port of control; 0 picks a free one."""
    redis_url: str = ""
    """External Redis; empty starts the embedded server."""
    operator_token: str = field(default="", repr=False)
    """Bearer token of control; empty lets everybody in who reaches it."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment of the processes, usually this process' own."""


def command_of(role: Role) -> tuple[str, ...]:
    """The command that runs a role, ended by the kernel or by itself when this process is gone."""
    return (*leashed(), "-m", f"rollstream_{role}")


def environment_of(plan: CellPlan, role: Role, *, member: str, number: int, redis_url: str, port: int) -> dict[str, str]:
    """The environment of one process: inherited, except for what makes it this member of this cell."""
    environment = {name: value for name, value in plan.environment.items() if name not in NOT_INHERITED}
    environment |= {
        "ROLLSTREAM_REDIS_URL": redis_url,
        "ROLLSTREAM_MEMBER_ID": member,
        "PYTHONUNBUFFERED": "1",
    }
    environment.setdefault("MALLOC_ARENA_MAX", "2")  # threads of ours allocate little: more arenas only hold memory
    environment = ONE_THREAD | environment
    if role == "control":
        environment |= {"ROLLSTREAM_HOST": plan.host, "ROLLSTREAM_PORT": str(port), "ROLLSTREAM_BACKEND": "local"}
        if plan.operator_token:
            environment["ROLLSTREAM_OPERATOR_TOKEN"] = plan.operator_token
    else:
        environment["ROLLSTREAM_HOST"] = "127.0.0.1"
        environment.pop("ROLLSTREAM_OPERATOR_TOKEN", None)
        environment.pop("ROLLSTREAM_VIEWER_TOKEN", None)
        environment.pop("ROLLSTREAM_TOKEN", None)
    if role == "learner":
        environment["ROLLSTREAM_RUNS_DIR"] = str(plan.runs_dir.absolute())
    if role == "replay":
        environment["ROLLSTREAM_SHARD"] = str(number)
    return environment
