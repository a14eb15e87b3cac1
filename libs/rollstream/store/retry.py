"""What to do when Redis does not answer as hoped: try again, wait for room, or give up with a clear error.

    reply or error ──▶ verdict ──▶ AGAIN    connection lost, server loading or failing over: back off, try again
                                   FULL     out of memory: back off (others may free some), try again
                                   REFUSED  password, permission, certificate: `StoreRefused` at once
                                   WRONG    any other error reply: `StoreError` at once, it would be the same again

AGAIN and FULL end with `StoreUnavailable` at the deadline. Whatever is tried again must be idempotent.
"""

from __future__ import annotations

import enum
import logging
import os
import re
import socket
import ssl

import numpy as np
import redis

from rollstream.clock import Clock, Deadline
from rollstream.errors import StoreError, StoreRefused, StoreUnavailable
from rollstream.seeding import child_generator

__all__ = ["Attempts", "Verdict", "is_out_of_memory", "judge", "reply_code"]

_LOG = logging.getLogger("rollstream.store")
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 1.0
_LOG_AFTER_S = 10.0
_REFUSED = ("NOAUTH", "WRONGPASS", "NOPERM")
_AGAIN = ("LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "MISCONF", "NOREPLICAS", "UNBLOCKED")


_REPLY_CODE = re.compile(r"(?:^|caused error: )([A-Z]{3,})\b")


class Verdict(enum.Enum):
    """What an error means for the caller; see the module's table."""

    AGAIN = enum.auto()
    FULL = enum.auto()
    REFUSED = enum.auto()
    WRONG = enum.auto()


def judge(error: BaseException) -> Verdict:
    """Sort an exception of `redis`, `hiredis`, `ssl` or `socket`."""
    if _has_bad_certificate(error):
        return Verdict.REFUSED
    if isinstance(error, redis.AuthenticationError | redis.exceptions.AuthorizationError | redis.exceptions.NoPermissionError):
        return Verdict.REFUSED
    if isinstance(error, redis.exceptions.AuthenticationWrongNumberOfArgsError):
        return Verdict.REFUSED
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return Verdict.FULL
    if isinstance(error, redis.ConnectionError | redis.TimeoutError | redis.exceptions.ReadOnlyError | redis.WatchError):
        return Verdict.AGAIN
    if isinstance(error, redis.exceptions.TryAgainError | redis.exceptions.ClusterDownError):
        return Verdict.AGAIN
    return _judge_text(str(error)) if not isinstance(error, OSError) else Verdict.AGAIN


def _judge_text(text: str) -> Verdict:
    text = text.removeprefix("EXECABORT Transaction discarded because of: ")
    code = text.split(" ", 1)[0]
    if code in _REFUSED or "invalid username-password" in text or "without any password configured" in text:
        return Verdict.REFUSED
    if code == "OOM" or "OOM command not allowed" in text:
        return Verdict.FULL
    return Verdict.AGAIN if code in _AGAIN else Verdict.WRONG


def _has_bad_certificate(error: BaseException | None) -> bool:
    for _ in range(8):
        if error is None:
            return False
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def reply_code(error: BaseException) -> str:
    """First word of the error reply behind a `StoreError`, e.g. `NOGROUP` or `WRONGTYPE`; empty when there is none."""
    cause = error.__cause__ if isinstance(error, StoreError) else error
    found = _REPLY_CODE.search(str(cause)) if isinstance(cause, redis.ResponseError) else None
    return found.group(1) if found else ""


def is_out_of_memory(error: StoreError) -> bool:
    """Whether Redis gave up an operation only because its memory is full."""
    return error.__cause__ is not None and judge(error.__cause__) is Verdict.FULL


class Attempts:
    """The attempts of one operation: back-off with jitter until the deadline.

    >>> attempts = Attempts("read the spec", "redis://cache:6379/0", clock=clock, deadline_s=30.0)  # doctest: +SKIP
    >>> while True:                                                                                 # doctest: +SKIP
    ...     try: return operation()
    ...     except OSError as error: clock.sleep(attempts.failed(error))
    """

    def __init__(self, what: str, where: str, *, clock: Clock, deadline_s: float) -> None:
        self._what = what
        self._where = where
        self._deadline = Deadline(clock, after_s=deadline_s)
        self._failures = 0
        self._logged = False
        self._generator: np.random.Generator | None = None  # made on the first failure: most operations have none

    def failed(self, error: BaseException) -> float:
        """Seconds to pause before the next attempt; or raises, when there must be none.

        The pause doubles from 20 ms to 1 s and is drawn from its upper half, so that clients which lost the same server do not
        come back in step.
        """
        verdict = judge(error)
        text = str(error).rstrip(".") or type(error).__name__
        if verdict is Verdict.REFUSED:
            raise StoreRefused(f"Redis at {self._where} refused to {self._what}: {text}{_advice(text)}") from error
        if verdict is Verdict.WRONG:
            raise StoreError(f"Redis at {self._where} could not {self._what}: {text}") from error
        remaining_s = self._deadline.remaining_s()
        if remaining_s <= 0:
            self._give_up(verdict, text, error)
        if self._generator is None:
            self._generator = child_generator(0, "retry", socket.gethostname(), os.getpid(), id(self))
        self._log(text)
        pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return min(remaining_s, pause_s * (0.5 + 0.5 * float(self._generator.random())))

    def _give_up(self, verdict: Verdict, text: str, error: BaseException) -> None:
        waited_s = self._deadline.waited_s()
        if verdict is Verdict.FULL:
            raise StoreUnavailable(
                f"Redis at {self._where} could not {self._what} for {waited_s:.1f} s: out of memory: "
                f"raise maxmemory or shrink tables ({text})"
            ) from error
        raise StoreUnavailable(
            f"Redis at {self._where} did not {self._what} within {waited_s:.1f} s "
            f"({self._failures + 1} attempts); last error: {text}"
        ) from error

    def _log(self, text: str) -> None:
        if not self._logged and self._deadline.waited_s() >= _LOG_AFTER_S:
            self._logged = True
            _LOG.warning("waiting for Redis at %s to %s for %.0f s: %s", self._where, self._what, self._deadline.waited_s(), text)


def _advice(text: str) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return "; check the host name and ca_file"
    if "NOPERM" in text or "permission" in text.lower():
        return "; grant the ACL user this command and the keys ~rs:*"
    return "; check user and password"
