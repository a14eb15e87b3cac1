"""`python -m rollstream_cli.reference` prints the reference page; with the folder `docs` it writes `docs/algorithms.md` and curves."""

from __future__ import annotations

import sys
from pathlib import Path

from rollstream_cli.reference.algorithms_page import draw_all, filled
from rollstream_cli.reference.page import page

if __name__ == "__main__":
    if len(sys.argv) > 1:
        docs = Path(sys.argv[1])
        draw_all(docs / "learning")
        file = docs / "algorithms.md"
        file.write_text(filled(file.read_text(encoding="utf-8"), learning=docs / "learning"), encoding="utf-8")
    else:
        sys.stdout.write(page())
