"""`python -m rollstream_control.chart.check_cell`: does the cell at ROLLSTREAM_URL do its job? What `helm test` runs.

It asks as any client would, with a viewer's token, until every expected role has a member that says it is ready, or a minute has
passed. Standard library only, so that it says what is wrong even where nothing else works.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Collection, Mapping
from typing import Any

from rollstream.clock import Clock, Deadline, SystemClock

__all__ = ["check", "lacking"]

DEADLINE_S = 60.0
AGAIN_AFTER_S = 1.0
ANSWER_WITHIN_S = 5.0


def lacking(cell: Mapping[str, Any], *, roles: Collection[str]) -> list[str]:
    """What the cell lacks, in sentences; empty when every role has a member that is ready and the server is known."""
    ready = {member["role"] for member in cell["members"] if member["ready"]}
    lacks = [f"no {role} is ready" for role in sorted(roles) if role not in ready]
    if not cell["scheduling"]:
        lacks.append("control does not assign actors yet")
    if cell["server"] is None:
        lacks.append("control has not heard from Redis")
    return lacks


def check(*, url: str, token: str, roles: Collection[str], clock: Clock, deadline_s: float = DEADLINE_S) -> list[str]:
    """Ask until nothing lacks or the deadline has passed; returns what lacked at the end."""
    deadline = Deadline(clock, after_s=deadline_s)
    while True:
        try:
            lacks = lacking(_cell(url, token), roles=roles)
        except (OSError, ValueError) as error:
            lacks = [f"{url}/v1/cell: {error}"]
        if not lacks or deadline.passed():
            return lacks
        clock.sleep(AGAIN_AFTER_S)


def _cell(url: str, token: str) -> dict[str, Any]:
    request = urllib.request.Request(f"{url}/v1/cell", headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as reply:
        cell: dict[str, Any] = json.load(reply)
        return cell


def main() -> int:
    """0 when the cell does its job, else 1 and what it lacks on standard error."""
    url = os.environ.get("ROLLSTREAM_URL", "http://127.0.0.1:8080").rstrip("/")
    roles = [role for role in os.environ.get("ROLLSTREAM_EXPECTED_ROLES", "control").split(",") if role]
    lacks = check(url=url, token=os.environ.get("ROLLSTREAM_TOKEN", ""), roles=roles, clock=SystemClock())
    for sentence in lacks:
        print(sentence, file=sys.stderr)
    if not lacks:
        print(f"the cell at {url} works: {', '.join(roles)} are ready")
    return 1 if lacks else 0


if __name__ == "__main__":
    sys.exit(main())
