"""`python -m rollstream_actor`."""

from __future__ import annotations

import sys

from rollstream_actor.settings import ActorSettings
from rollstream_actor.wiring import main
from rollstream_service.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("actor", ActorSettings, main))
