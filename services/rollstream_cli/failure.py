"""One message for a run that failed: what, where (flow file and line, operator, actor), and the user's own traceback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["failure_message"]

WHOSE = {"environment": "the environment", "flow": "a step of the flow", "learner": "the learner"}


def failure_message(experiment: str, *, reason: str, detail: str, faults: Sequence[Mapping[str, Any]]) -> str:
    """What a person reads at the end of a failed run.

    Args:
        reason, detail: of the experiment's phase; the detail is a traceback when there is one.
        faults: as control lists them, oldest first.
    """
    lines = [f"{experiment} failed: {reason or 'no reason was given'}"]
    fault = _cause(faults)
    traceback = detail
    if fault is not None:
        where = _where(fault)
        if where and not all(part in reason for part in where):
            lines.append(f"in {WHOSE.get(str(fault.get('kind')), 'the run')}: {', '.join(where)}")
        message = str(fault.get("message") or "")
        if message and message not in reason:
            lines.append(message)
        traceback = str(fault.get("traceback") or "") or detail
    if traceback.strip():
        lines += ["", traceback.rstrip()]
    return "\n".join(lines)


def _cause(faults: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The first fatal fault, for later ones may be its consequences; the last of all when none was fatal."""
    for fault in faults:
        if fault.get("fatal"):
            return fault
    return faults[-1] if faults else None


def _where(fault: Mapping[str, Any]) -> list[str]:
    place = fault.get("where")
    parts: list[str] = []
    if isinstance(place, Mapping):
        if place.get("operator"):
            parts.append(str(place["operator"]))
        if place.get("file"):
            parts.append(f"{place['file']}:{place.get('line', 0)}")
    elif place:
        parts.append(str(place))
    if fault.get("actor"):
        parts.append(str(fault["actor"]))
    return parts
