"""A program that is tied to the thread that started it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from rollstream.store.tied import tied

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties processes to threads")


def test_a_program_ends_with_the_thread_that_started_it() -> None:
    started: list[subprocess.Popen[bytes]] = []
    over = threading.Event()

    def start() -> None:
        program = subprocess.Popen([*tied(), sys.executable, "-S", "-c", "print(1, flush=True); input()"], stdin=-1, stdout=-1)
        assert program.stdout is not None
        program.stdout.readline()
        started.append(program)
        over.wait()

    thread = threading.Thread(target=start)
    thread.start()
    while not started:
        over.wait(0.01)
    assert started[0].poll() is None
    over.set()
    thread.join()
    assert started[0].wait(timeout=20) == -signal.SIGTERM


def test_a_program_whose_starter_is_gone_already_does_not_begin() -> None:
    interpreter, flag, file, _ = tied()
    done = subprocess.run([interpreter, flag, file, "1", sys.executable, "-c", "print(1)"], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (137, b"")
