"""`python -m rollstream_control`: the REST API, the scheduler of actors, and their scale."""

from __future__ import annotations

import sys

from rollstream_control.settings import ControlSettings
from rollstream_control.wiring import main
from rollstream_service.lifecycle import run

__all__: list[str] = []

if __name__ == "__main__":
    sys.exit(run("control", ControlSettings, main))
