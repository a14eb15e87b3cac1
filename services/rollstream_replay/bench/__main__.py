"""`python -m rollstream_replay.bench`: what `rollstream bench replay` runs."""

from __future__ import annotations

import sys

from rollstream_replay.bench.run import main

sys.exit(main(sys.argv[1:]))
