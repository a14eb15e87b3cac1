"""One message for a failed run."""

from __future__ import annotations

from rollstream_cli.failure import failure_message

TRACE = 'Traceback (most recent call last):\n  File "env.py", line 3, in step\nValueError: boom'


def test_the_message_names_the_place_once_and_ends_with_the_users_traceback() -> None:
    fault = {
        "kind": "flow",
        "message": "ValueError: boom",
        "actor": "actor-1",
        "where": {"operator": "for_each(shape_reward)", "file": "flow.py", "line": 12},
        "traceback": TRACE,
        "fatal": True,
    }
    message = failure_message("ppo-1", reason="a step failed", detail=TRACE, faults=[fault])
    assert message.splitlines()[:3] == [
        "ppo-1 failed: a step failed",
        "in a step of the flow: for_each(shape_reward), flow.py:12, actor-1",
        "ValueError: boom",
    ]
    assert message.endswith(TRACE)
    assert message.count("Traceback") == 1


def test_what_the_reason_says_already_is_not_repeated() -> None:
    reason = "update at flow.py:9 on actor-0: ValueError: boom"
    fault = {"kind": "flow", "message": "ValueError: boom", "actor": "actor-0", "fatal": True}
    assert failure_message("ppo-1", reason=reason, detail="", faults=[fault]) == f"ppo-1 failed: {reason}"


def test_the_first_fatal_fault_is_the_cause() -> None:
    faults = [
        {"kind": "environment", "message": "first", "fatal": False},
        {"kind": "environment", "message": "second", "fatal": True},
        {"kind": "learner", "message": "third", "fatal": True},
    ]
    assert "second" in failure_message("a", reason="failed", detail="", faults=faults)
    assert "first" in failure_message("a", reason="failed", detail="", faults=faults[:1])


def test_a_run_without_faults_has_its_reason_and_detail() -> None:
    assert failure_message("a", reason="no table", detail="why", faults=[]) == "a failed: no table\n\nwhy"
    assert failure_message("a", reason="", detail="", faults=[]) == "a failed: no reason was given"
