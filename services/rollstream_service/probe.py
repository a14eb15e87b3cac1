"""Ask one probe and exit 0 or 1: `python -m rollstream_service.probe http://127.0.0.1:8080/readyz`.

For container health checks: images without curl, and a start-up of a few milliseconds (standard library only).
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

__all__ = ["main"]

DEADLINE_S = 4.0


def main(arguments: list[str]) -> int:
    """0 when the probe answers 200 in time; otherwise 1, and why on standard error."""
    if len(arguments) != 1:
        print("usage: python -m rollstream_service.probe URL", file=sys.stderr)
        return 2
    try:
        with urllib.request.urlopen(arguments[0], timeout=DEADLINE_S) as reply:
            reply.read()
    except urllib.error.HTTPError as error:
        print(f"{arguments[0]} answers {error.code}: {error.read().decode(errors='replace')}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{arguments[0]} does not answer: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
