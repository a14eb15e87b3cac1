"""Start and stop the supervisor of a long-lived cell from another process."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from rollstream.errors import ConfigError
from rollstream_cli.cell.child import last_words
from rollstream_cli.cell.server import wait_for_exit
from rollstream_cli.cell.state import CELL_FILE, is_running, read_state
from rollstream_cli.daemon import REPLY_VARIABLE, UpRequest, error_of
from rollstream_cli.errors import CellError
from rollstream_service.folders import make_writable

__all__ = ["start_in_background", "stop_in_background"]

READY_WITHIN_S = 90.0
STOP_WITHIN_S = 45.0


def start_in_background(request: UpRequest) -> str:
    """Start a supervisor in a session of its own, and wait until its cell is ready.

    Returns:
        The cell's URL.

    Raises:
        RollstreamError: what the supervisor says went wrong; it has ended then.
    """
    log = request.directory / "logs" / "supervisor.log"
    make_writable(log.parent, what="the folder of the cell's logs", remedy="choose another with --dir")
    reader, writer = os.pipe()
    try:
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "rollstream_cli.daemon"],
                env=os.environ | {REPLY_VARIABLE: str(writer)},
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=(writer,),
                start_new_session=True,
            )
        os.close(writer)
        writer = -1
        assert process.stdin is not None, "it is a pipe"
        with process.stdin:
            process.stdin.write(request.model_dump_json().encode() + b"\n")
        ready, _, _ = select.select([reader], [], [], READY_WITHIN_S)
        line = os.read(reader, 1 << 16) if ready else b""
    except BaseException:
        if writer >= 0:
            os.close(writer)
        raise
    finally:
        os.close(reader)
    if not line:
        process.terminate()
        words = last_words(log) or "it said nothing"
        raise CellError(f"the supervisor did not start the cell: {words}; see {log}")
    reply = json.loads(line)
    if "error" in reply:
        process.wait()
        raise error_of(reply)
    return str(reply["url"])


def stop_in_background(directory: Path) -> bool:
    """Stop the cell in `directory`: SIGTERM for its supervisor, SIGKILL when that does not end in time (its processes follow it).

    Returns:
        False when no cell runs there.
    """
    if not is_running(directory):
        (directory / CELL_FILE).unlink(missing_ok=True)  # of one that was killed
        return False
    state = read_state(directory)
    if state.kind == "train":
        raise ConfigError(
            f"{directory} belongs to a `rollstream {state.kind}` in another terminal (process {state.pid}); press Ctrl-C there, "
            f"or use `rollstream stop {state.experiment} --dir {directory}`"
        )
    try:
        os.kill(state.pid, signal.SIGTERM)
        if not wait_for_exit(state.pid, timeout_s=STOP_WITHIN_S):
            os.kill(state.pid, signal.SIGKILL)
            wait_for_exit(state.pid, timeout_s=5.0)
            (directory / CELL_FILE).unlink(missing_ok=True)
    except ProcessLookupError:
        pass
    except PermissionError as error:
        raise CellError(f"cannot stop process {state.pid} of {directory}: it belongs to another user") from error
    return True
