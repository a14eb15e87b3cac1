"""The process in which a user's environment says what its spaces are. Reads one request, answers one line of JSON, ends.

Standard output is the reply's alone: whatever the environment prints goes nowhere.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from rollstream.config import EnvironmentSpec
from rollstream.errors import ConfigError, EnvironmentFault
from rollstream.user_code import user_traceback
from rollstream_control.submission.inspection import encode, is_missing_package
from rollstream_control.submission.validation import Inspected

__all__ = ["main"]


def main() -> None:
    """`python -m rollstream_control.submission.inspection_child CPU_SECONDS < request`"""
    reply_to = os.dup(1)
    os.dup2(2, 1)
    _limit_cpu(int(sys.argv[1]))
    request = json.load(sys.stdin)
    reply = encode(_inspect(EnvironmentSpec.model_validate(request["environment"]), tuple(request["allow"])))
    with os.fdopen(reply_to, "wb") as stream:
        stream.write(json.dumps(reply).encode() + b"\n")
    os._exit(0)  # threads and exit handlers of the environment must not hold us


def _inspect(spec: EnvironmentSpec, allow: tuple[str, ...]) -> Inspected | ConfigError | None:
    from rollstream.envs import inspect_environment

    try:
        return inspect_environment(spec, allow=allow)
    except ConfigError as error:
        return None if is_missing_package(error) else error
    except EnvironmentFault as error:
        if is_missing_package(error):
            return None
        return ConfigError(f"{error}\n{user_traceback(error)}".strip())


def _limit_cpu(seconds: int) -> None:
    """Children that escape the parent's kill end by themselves."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


if __name__ == "__main__":
    main()
