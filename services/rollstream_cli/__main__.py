"""Entry point of `rollstream` and `python -m rollstream_cli`: runs a command, turns our errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line; never shows a traceback of ours for an error that was foreseen."""
    from rollstream_cli.leave import leave

    try:
        _run()
    except SystemExit as ended:
        leave(ended)
    leave(SystemExit(0))


def _run() -> None:
    for library in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(
            library, "1"
        )  # of NumPy and torch, which read them when they load; small matrices are not worth more
    from rollstream.errors import RollstreamError
    from rollstream_cli.app import app

    try:
        app()
    except RollstreamError as error:
        from rollstream_cli.output import print_error

        print_error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:  # before signals are caught, or in a command that leaves nothing behind
        sys.exit(130)


if __name__ == "__main__":
    main()
