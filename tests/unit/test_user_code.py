"""Tracebacks begin where the user's code does, and hold nothing of ours before it."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest

from rollstream.errors import EnvironmentFault, FlowError, NonFiniteError
from rollstream.user_code import RemoteTraceback, user_traceback


def ours(source: str, **names: Any) -> Any:
    """The function `call` of a module whose name is one of ours."""
    module = types.ModuleType("rollstream.pretended")
    module.__dict__.update(names)
    exec(compile(source, "/ours/pretended.py", "exec"), module.__dict__)
    return module.call


CALL = "def call(inner):\n    return inner()\n"


def caught(call: Callable[[], Any]) -> BaseException:
    with pytest.raises(Exception) as info:
        call()
    error = info.value
    assert error.__traceback__ is not None
    error.__traceback__ = error.__traceback__.tb_next  # the frame of this function
    return error


def their_step() -> None:
    raise ValueError("boom")


def their_step_by_ours() -> None:
    ours(CALL)(their_step)


def their_wrong_call() -> None:
    ours("def call():\n    return {}['key']\n")()


def test_frames_of_ours_before_the_users_are_left_out() -> None:
    error = caught(lambda: ours(CALL)(their_step_by_ours))
    told = user_traceback(error)
    assert "/ours/pretended.py" not in told
    assert told.index("in their_step_by_ours") < told.index("in their_step\n")
    assert told.endswith("ValueError: boom\n")
    assert told.count("Traceback") == 1


def test_what_the_users_code_called_stays() -> None:
    told = user_traceback(caught(their_wrong_call))
    assert told.index("in their_wrong_call") < told.index("/ours/pretended.py")


def test_what_we_wrapped_around_it_is_left_out() -> None:
    def wrapped() -> None:
        try:
            try:
                their_step()
            except ValueError as error:
                raise EnvironmentFault("environment 'x' raised ValueError") from error
        except EnvironmentFault as fault:
            raise FlowError("operator 'rollouts' failed") from fault

    told = user_traceback(caught(wrapped))
    assert told.count("Traceback") == 1
    assert "EnvironmentFault" not in told and "FlowError" not in told
    assert told.endswith("ValueError: boom\n")


def test_the_users_own_causes_stay() -> None:
    def chained() -> None:
        try:
            their_step()
        except ValueError as error:
            raise RuntimeError("no physics") from error

    told = user_traceback(caught(chained))
    assert told.count("Traceback") == 2
    assert "direct cause" in told


def test_an_error_of_ours_without_a_frame_of_the_users_has_no_traceback() -> None:
    error = caught(ours("def call():\n    raise kind('nan reward')\n", kind=NonFiniteError))
    assert user_traceback(error) == ""
    module = caught(ours("def call():\n    import no_such_module\n"))
    assert user_traceback(module) == ""


def test_a_bug_of_ours_has_all_of_its_traceback() -> None:
    told = user_traceback(caught(ours("def call():\n    return {}['key']\n")))
    assert 'File "/ours/pretended.py", line 2, in call' in told
    assert told.endswith("KeyError: 'key'\n")


def test_a_syntax_error_is_told_by_its_own_file_and_line() -> None:
    told = user_traceback(caught(ours("def call():\n    compile('def f(:', 'theirs.py', 'exec')\n")))
    assert "/ours/pretended.py" not in told
    assert 'File "theirs.py", line 1' in told


def test_the_traceback_of_another_process_stands_for_the_one_here() -> None:
    error = RuntimeError("boom")
    error.__cause__ = RemoteTraceback("Traceback of the worker")
    fault = EnvironmentFault("worker of copy 1 raised RuntimeError")
    fault.__cause__ = error
    assert user_traceback(fault) == "Traceback of the worker"
    assert "Traceback of the worker" in str(error.__cause__)
