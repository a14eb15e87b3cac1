"""A process that is told to stop ends in time, also when it cannot finish."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

SERVICE = """
import sys
from rollstream_service.lifecycle import run
from rollstream_service.settings import CommonSettings

def main(settings, life):
    print("started", flush=True)
    life.stopping.wait(60)
    life.clock.sleep(float(sys.argv[1]))

sys.exit(run("test", CommonSettings, main))
"""


@pytest.mark.parametrize(("needs_s", "code", "event"), [(0.0, 0, "stopped"), (60.0, 1, "could not finish in time")])
def test_the_grace_period_is_kept(needs_s: float, code: int, event: str) -> None:
    environment = {**os.environ, "ROLLSTREAM_REDIS_URL": "unix:///nowhere", "ROLLSTREAM_GRACE_S": "0.3"}
    process = subprocess.Popen([sys.executable, "-c", SERVICE, str(needs_s)], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGTERM)
    lines, _ = process.communicate(timeout=30)
    assert process.returncode == code
    assert json.loads(lines.splitlines()[-1])["event"].startswith(event)
