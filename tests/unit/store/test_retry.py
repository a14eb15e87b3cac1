"""Retrying: what each error means, how pauses grow, and what the last message says."""

from __future__ import annotations

import ssl

import hiredis
import pytest
import redis

from rollstream.clock import FakeClock
from rollstream.errors import StoreError, StoreRefused, StoreUnavailable
from rollstream.store.retry import Attempts, Verdict, judge, reply_code

LOST = redis.ConnectionError("Connection refused")


def attempts(clock: FakeClock, *, deadline_s: float = 30.0) -> Attempts:
    return Attempts("read the spec", "redis://cache:6379/0", clock=clock, deadline_s=deadline_s)


def bad_certificate() -> redis.ConnectionError:
    error = redis.ConnectionError("Error 1 connecting to cache:6379.")
    error.__cause__ = ssl.SSLCertVerificationError("certificate verify failed")
    return error


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (LOST, Verdict.AGAIN),
        (redis.TimeoutError("Timeout reading from socket"), Verdict.AGAIN),
        (ConnectionResetError("reset"), Verdict.AGAIN),
        (redis.exceptions.BusyLoadingError("Redis is loading the dataset in memory"), Verdict.AGAIN),
        (redis.exceptions.ReadOnlyError("You can't write against a read only replica."), Verdict.AGAIN),
        (redis.exceptions.ClusterDownError("CLUSTERDOWN The cluster is down"), Verdict.AGAIN),
        (redis.WatchError("Watched variable changed."), Verdict.AGAIN),
        (redis.ResponseError("BUSY Redis is busy running a script."), Verdict.AGAIN),
        (redis.ResponseError("MISCONF Errors writing to the AOF file: No space left on device"), Verdict.AGAIN),
        (hiredis.ReplyError("LOADING Redis is loading the dataset in memory"), Verdict.AGAIN),
        (redis.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."), Verdict.FULL),
        (hiredis.ReplyError("OOM command not allowed when used memory > 'maxmemory'."), Verdict.FULL),
        (redis.AuthenticationError("Authentication required."), Verdict.REFUSED),
        (redis.exceptions.NoPermissionError("this user has no permissions to run 'set'"), Verdict.REFUSED),
        (redis.exceptions.AuthenticationWrongNumberOfArgsError("wrong number of arguments"), Verdict.REFUSED),
        (hiredis.ReplyError("NOAUTH Authentication required."), Verdict.REFUSED),
        (hiredis.ReplyError("WRONGPASS invalid username-password pair or user is disabled."), Verdict.REFUSED),
        (hiredis.ReplyError("NOPERM this user has no permissions"), Verdict.REFUSED),
        (hiredis.ReplyError("EXECABORT Transaction discarded because of: LOADING Redis is loading"), Verdict.AGAIN),
        (hiredis.ReplyError("EXECABORT Transaction discarded because of: OOM command not allowed when"), Verdict.FULL),
        (bad_certificate(), Verdict.REFUSED),
        (redis.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), Verdict.WRONG),
        (redis.ResponseError("unknown command 'FOO'"), Verdict.WRONG),
        (hiredis.ReplyError("ERR syntax error"), Verdict.WRONG),
    ],
)
def test_each_error_has_its_verdict(error: Exception, verdict: Verdict) -> None:
    assert judge(error) is verdict


def test_pauses_grow_with_jitter_up_to_a_second() -> None:
    trying = attempts(FakeClock())
    pauses = [trying.failed(LOST) for _ in range(12)]
    for number, pause_s in enumerate(pauses):
        longest = min(1.0, 0.02 * 2**number)
        assert 0.5 * longest <= pause_s <= longest
    assert len(set(pauses)) == len(pauses)


def test_two_clients_do_not_pause_alike() -> None:
    first, second = attempts(FakeClock()), attempts(FakeClock())
    assert [first.failed(LOST) for _ in range(3)] != [second.failed(LOST) for _ in range(3)]


def test_the_last_pause_ends_at_the_deadline(clock: FakeClock) -> None:
    trying = attempts(clock, deadline_s=0.005)
    assert trying.failed(LOST) <= 0.005


def test_the_deadline_ends_with_what_where_and_why(clock: FakeClock) -> None:
    trying = attempts(clock, deadline_s=2.0)
    message = (
        r"Redis at redis://cache:6379/0 did not read the spec within 2\.\d s \(\d+ attempts\); last error: Connection refused"
    )
    with pytest.raises(StoreUnavailable, match=message) as caught:
        while True:
            clock.sleep(trying.failed(LOST))
    assert caught.value.__cause__ is LOST


def test_a_full_server_is_waited_for_and_then_named(clock: FakeClock) -> None:
    trying = attempts(clock, deadline_s=1.0)
    full = hiredis.ReplyError("OOM command not allowed when used memory > 'maxmemory'.")
    with pytest.raises(StoreUnavailable, match="out of memory: raise maxmemory or shrink tables"):
        while True:
            clock.sleep(trying.failed(full))
    assert clock.monotonic_s() >= 1.0


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (redis.AuthenticationError("invalid username-password pair"), "refused to read the spec: .*; check user and password"),
        (redis.exceptions.NoPermissionError("NOPERM no permissions to run 'get'"), "refused to .*; grant the ACL user"),
        (ssl.SSLCertVerificationError("CERTIFICATE_VERIFY_FAILED"), "refused to .*; check the host name and ca_file"),
    ],
)
def test_a_refusal_is_not_tried_again_and_says_what_to_do(clock: FakeClock, error: Exception, message: str) -> None:
    with pytest.raises(StoreRefused, match=message):
        attempts(clock).failed(error)


def test_any_other_error_reply_is_not_tried_again(clock: FakeClock) -> None:
    with pytest.raises(StoreError, match="could not read the spec: unknown command"):
        attempts(clock).failed(redis.ResponseError("unknown command 'FOO'"))


def test_a_long_wait_is_logged_once_with_both_sides(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    trying = attempts(clock, deadline_s=60.0)
    with pytest.raises(StoreUnavailable):
        while True:
            clock.sleep(trying.failed(LOST))
    assert [record.getMessage().split(" for ")[0] for record in caplog.records] == ["waiting"]
    assert "waiting for Redis at redis://cache:6379/0 to read the spec for 1" in caplog.text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NOGROUP No such key 'a' or consumer group", "NOGROUP"),
        ("Command # 1 (XREADGROUP ...) of pipeline caused error: NOGROUP No such key", "NOGROUP"),
        ("unknown command 'FOO'", ""),
    ],
)
def test_the_code_of_an_error_reply_can_be_asked_for(clock: FakeClock, text: str, code: str) -> None:
    with pytest.raises(StoreError) as caught:
        attempts(clock).failed(redis.ResponseError(text))
    assert reply_code(caught.value) == code
    assert reply_code(ValueError(text)) == ""
