"""One message for a failed run."""

from __future__ import annotations

from rollstream_cli.failure import failure_message

TRACE = 'Traceback (most recent call last):\n  File "env.py", line 3, in step\nValueError: boom'


def test_the_message_says_what_and_where_and_ends_with_the_users_traceback() -> None:
    reason = "operator 'shape_reward' in actor 'actor-1' (flow.py:12) failed: ValueError: boom"
    assert failure_message("ppo-1", reason=reason, detail=TRACE) == f"ppo-1 failed: {reason}\n\n{TRACE}"


def test_a_run_without_a_traceback_has_its_reason_alone() -> None:
    assert failure_message("a", reason="no table", detail="") == "a failed: no table"
    assert failure_message("a", reason="", detail=" ") == "a failed: no reason was given"
