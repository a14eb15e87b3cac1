"""`python -m rollstream_cli.reference` prints the reference page."""

from __future__ import annotations

import sys

from rollstream_cli.reference.page import page

if __name__ == "__main__":
    sys.stdout.write(page())
