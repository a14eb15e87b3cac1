"""`python -m rollstream_learner.bench`: what `rollstream bench graph` runs, in a process whose threads are set before NumPy loads."""

from __future__ import annotations

import sys

from rollstream_learner.bench.run import main

sys.exit(main(sys.argv[1:]))
