"""`python -m rollstream_replay`."""

from __future__ import annotations

import sys

from rollstream_replay.settings import ReplaySettings
from rollstream_replay.wiring import main
from rollstream_service.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("replay", ReplaySettings, main))
