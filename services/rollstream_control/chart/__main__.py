"""`python -m rollstream_control.chart FOLDER`: write the generated files of the chart in FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

from rollstream_control.chart.files import GENERATED

__all__: list[str] = []


def main(arguments: list[str]) -> int:
    """0 when all files are written; 2 with the usage when the folder is missing."""
    if len(arguments) != 1 or not (Path(arguments[0]) / "Chart.yaml").is_file():
        print("usage: python -m rollstream_control.chart FOLDER_WITH_CHART_YAML", file=sys.stderr)
        return 2
    for name, make in GENERATED.items():
        path = Path(arguments[0]) / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(make(), encoding="utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
