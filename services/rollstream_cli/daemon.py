"""The supervisor of a long-lived cell: started by `rollstream up` in a session of its own, ended by `rollstream down` (SIGTERM).

It reads what it shall start as one line of JSON on standard input, and answers with one line on the pipe that it is given: the
URL, or why there is none. What it has to say later goes to `logs/supervisor.log`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from rollstream.clock import Clock, SystemClock
from rollstream.config import Frozen
from rollstream.errors import ConfigError, Problem, RollstreamError
from rollstream_cli.errors import CellError
from rollstream_cli.interrupts import Interrupts, catch_interrupts
from rollstream_cli.session import CellSession, plan_cell

__all__ = ["UpRequest", "main", "reply_error", "supervise"]

REPLY_VARIABLE = "ROLLSTREAM_UP_REPLY_FD"


class UpRequest(Frozen):
    """What `rollstream up` asks for."""

    directory: Path
    """Run directory of the cell."""
    runs_dir: Path
    """Where learners write."""
    actors: int
    """Actors at the start."""
    learners: int
    """Experiments that run at once."""
    replay_shards: int
    """Shards of the replay service."""
    host: str
    """Address on which control listens."""
    port: int
    """Port of control; 0 picks a free one."""


def supervise(request: UpRequest, *, interrupts: Interrupts, clock: Clock, tell_ready: Any) -> None:
    """Run the cell until a signal asks for its end; raises when it cannot work."""
    plan = plan_cell(
        request.directory,
        runs_dir=request.runs_dir,
        actors=request.actors,
        learners=request.learners,
        replay_shards=request.replay_shards,
        host=request.host,
        port=request.port,
    )
    with CellSession(plan, clock=clock, interrupts=interrupts, kind="up") as session:
        tell_ready(session.cell.url)
        while not interrupts.asked.is_set():
            happening = session.inbox.next(timeout_s=3600.0)
            if happening is not None and happening.kind == "cell-failed":
                raise CellError(happening.message)
            if happening is not None and happening.kind == "note":
                print(happening.message, flush=True)


def reply_error(error: RollstreamError) -> dict[str, Any]:
    """An error as the line that `rollstream up` reads."""
    problems = error.problems if isinstance(error, ConfigError) else ()
    return {
        "error": str(error),
        "exit_code": error.exit_code,
        "problems": [{"path": problem.path, "message": problem.message} for problem in problems],
    }


def error_of(reply: dict[str, Any]) -> RollstreamError:
    """The error in a reply, with its exit code."""
    problems = [Problem(path=entry["path"], message=entry["message"]) for entry in reply.get("problems", ())]
    if problems:
        return ConfigError(str(reply["error"]), problems=problems)
    error = CellError(str(reply["error"]))
    error.exit_code = int(reply["exit_code"])
    return error


def main() -> int:
    """`python -m rollstream_cli.daemon`."""
    request = UpRequest.model_validate_json(sys.stdin.readline())
    descriptor = int(os.environ.pop(REPLY_VARIABLE))
    os.set_inheritable(descriptor, False)
    with os.fdopen(descriptor, "w") as reply:

        def tell(answer: dict[str, Any]) -> None:
            if not reply.closed:
                reply.write(json.dumps(answer) + "\n")
                reply.close()

        try:
            with catch_interrupts() as interrupts:
                supervise(request, interrupts=interrupts, clock=SystemClock(), tell_ready=lambda url: tell({"url": url}))
        except RollstreamError as error:
            tell(reply_error(error))
            print(f"stopped: {error}", flush=True)
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
