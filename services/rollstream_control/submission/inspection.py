"""Looks at environments on behalf of control: in this process what is known to be harmless, the rest in a process of its own.

    CartPole-v1 (no kwargs)        ─▶ this process: Gymnasium's own, milliseconds
    anything else                  ─▶ child process, own session, no secrets, deadline ─▶ one line of JSON ─▶ killed

A user's constructor may hang, crash the interpreter or eat a core: that costs control one child, the caller gets one clear error.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollstream.clock import Clock, Deadline
from rollstream.config import EnvironmentSpec
from rollstream.errors import ConfigError, EnvironmentFault, Problem
from rollstream.spaces import Leaf
from rollstream_control.failure import Failure
from rollstream_control.submission.validation import Inspected

__all__ = ["EnvironmentInspector", "Inspection", "decode", "encode", "is_missing_package", "without_secrets"]

MAX_REPLY_BYTES = 16 << 20
CONCURRENT = 2
"""Children at a time: more would starve the cell's own processes on a small machine."""
SECRET_WORDS = ("TOKEN", "PASSWORD", "SECRET", "CREDENTIAL", "KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """Leaves of one environment's spaces."""

    observation_leaves: tuple[Leaf, ...]
    action_leaves: tuple[Leaf, ...]


class EnvironmentInspector:
    """See the module. Thread-safe.

    Args:
        inspect_here: looks at an environment in this process.
        allow: modules from which entry points may come.
        child: command of the child process; its standard input gets the request.
    """

    def __init__(
        self,
        *,
        inspect_here: Callable[[EnvironmentSpec], Inspected],
        allow: Sequence[str],
        deadline_s: float,
        clock: Clock,
        child: Sequence[str] = (sys.executable, "-m", "rollstream_control.submission.inspection_child"),
    ) -> None:
        self._inspect_here = inspect_here
        self._allow = tuple(allow)
        self._deadline_s = deadline_s
        self._clock = clock
        self._child = tuple(child)
        self._slots = threading.BoundedSemaphore(CONCURRENT)

    def inspect(self, spec: EnvironmentSpec) -> Inspected | None:
        """What the environment says about itself; None when its package is not installed here (actors may have it).

        Raises:
            ConfigError: it does not exist, has spaces that cannot be stored, crashed, or did not answer in time.
        """
        if ":" not in spec.id and "/" not in spec.id and not spec.kwargs:
            return self._inspect_in_process(spec)
        if not self._slots.acquire(timeout=self._deadline_s):
            raise Failure(
                f"other environments have been inspected for {self._deadline_s:g} s; try again",
                status=503,
                kind="busy",
                headers={"Retry-After": "5"},
            )
        try:
            return self._inspect_in_child(spec)
        finally:
            self._slots.release()

    def _inspect_in_process(self, spec: EnvironmentSpec) -> Inspected | None:
        try:
            return self._inspect_here(spec)
        except (ConfigError, EnvironmentFault) as error:
            if is_missing_package(error):
                return None
            if isinstance(error, ConfigError):
                raise
            fault = str(error)
            raise ConfigError(fault) from error

    def _inspect_in_child(self, spec: EnvironmentSpec) -> Inspected | None:
        request = json.dumps({"environment": spec.model_dump(mode="json"), "allow": self._allow}).encode()
        process = subprocess.Popen(
            [*self._child, str(int(self._deadline_s) + 1)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=without_secrets(os.environ),
        )
        try:
            line = self._line(process, request)
        finally:
            status = _end(process)
        if line is None:
            raise ConfigError(
                f"environment {spec.id!r} did not say within {self._deadline_s:g} s what its spaces are; make its "
                "constructor faster, or raise ROLLSTREAM_INSPECTION_DEADLINE_S"
            )
        if not line:
            raise ConfigError(f"environment {spec.id!r} ended the process that looked at its spaces ({_ending(status)})")
        return decode(json.loads(line))

    def _line(self, process: subprocess.Popen[bytes], request: bytes) -> bytes | None:
        """The child's reply; empty when it died without one, None when it took too long."""
        assert process.stdin is not None and process.stdout is not None, "both are pipes"
        deadline = Deadline(self._clock, after_s=self._deadline_s)
        try:
            process.stdin.write(request)
            process.stdin.close()
        except BrokenPipeError:
            return b""
        reply = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not reply.endswith(b"\n"):
                if not selector.select(timeout=deadline.remaining_s()):
                    return None
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part or len(reply) > MAX_REPLY_BYTES:
                    return b""
                reply += part
        return bytes(reply)


def encode(outcome: Inspected | ConfigError | None) -> dict[str, Any]:
    """What the child says, as JSON."""
    if outcome is None:
        return {"missing": True}
    if isinstance(outcome, ConfigError):
        problems = [{"path": problem.path, "message": problem.message} for problem in outcome.problems]
        return {"refused": str(outcome), "problems": problems}
    names = Leaf.__slots__
    return {
        "observation": [{name: getattr(leaf, name) for name in names} for leaf in outcome.observation_leaves],
        "action": [{name: getattr(leaf, name) for name in names} for leaf in outcome.action_leaves],
    }


def decode(reply: Mapping[str, Any]) -> Inspection | None:
    """The inverse of `encode`; a refusal is raised."""
    if reply.get("missing"):
        return None
    if "refused" in reply:
        problems = [Problem(path=entry["path"], message=entry["message"]) for entry in reply["problems"]]
        refusal = str(reply["refused"])
        raise ConfigError(refusal, problems=problems)
    return Inspection(
        observation_leaves=tuple(_leaf(entry) for entry in reply["observation"]),
        action_leaves=tuple(_leaf(entry) for entry in reply["action"]),
    )


def is_missing_package(error: BaseException) -> bool:
    """True when `error` comes from an import of something that is not installed here."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ImportError) or type(seen).__name__ == "DependencyNotInstalled":
            return True
        seen = seen.__cause__
    return False


def _leaf(entry: Mapping[str, Any]) -> Leaf:
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    return Leaf(**fields)


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment variables without ours and without those whose names sound secret."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("ROLLSTREAM_") and not any(word in name.upper() for word in SECRET_WORDS)
    }


def _end(process: subprocess.Popen[bytes]) -> int:
    """Kill the child with all that it started in its session; returns its exit status."""
    try:
        status = process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        status = 0
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                pass
    return status


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit code {status}"
