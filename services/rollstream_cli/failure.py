"""One message for a run that failed: what, where (flow file and line, operator, actor), and the user's own traceback."""

from __future__ import annotations

__all__ = ["failure_message"]


def failure_message(experiment: str, *, reason: str, detail: str) -> str:
    """What a person reads at the end of a failed run.

    Args:
        reason, detail: of the experiment's phase: one sentence that says what and where, and a traceback when there is one.
    """
    lines = [f"{experiment} failed: {reason or 'no reason was given'}"]
    if detail.strip():
        lines += ["", detail.rstrip()]
    return "\n".join(lines)
