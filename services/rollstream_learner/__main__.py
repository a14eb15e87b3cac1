"""`python -m rollstream_learner`."""

from __future__ import annotations

import sys

from rollstream_learner.settings import LearnerSettings
from rollstream_learner.wiring import main
from rollstream_service.lifecycle import run

if __name__ == "__main__":
    sys.exit(run("learner", LearnerSettings, main))
