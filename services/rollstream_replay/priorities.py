"""How the priorities of a table are spread: a histogram over bins of equal ratio, since priorities span many powers of ten."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["priority_histogram"]


def priority_histogram(priority: npt.NDArray[np.float32], *, bins: int) -> dict[str, Any]:
    """Counts by `bins` bins of equal ratio from the least to the greatest priority above 0, and the number of zeros.

    >>> told = priority_histogram(np.array([0, 1, 1, 10, 100], np.float32), bins=2)
    >>> told["zeros"], told["edges"], told["counts"]
    (1, [1.0, 10.0, 100.0], [2, 2])
    """
    positive = priority[priority > 0].astype(np.float64)
    told: dict[str, Any] = {
        "items": len(priority),
        "zeros": len(priority) - len(positive),
        "min": float(priority.min()) if len(priority) else None,
        "max": float(priority.max()) if len(priority) else None,
        "mean": float(priority.mean(dtype=np.float64)) if len(priority) else None,
        "edges": [],
        "counts": [],
    }
    if not len(positive):
        return told
    low, high = float(positive.min()), float(positive.max())
    edges = np.geomspace(low, high, bins + 1) if high > low else np.array([low, high])
    edges[0], edges[-1] = low, high
    at = np.clip(np.searchsorted(edges, positive, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(at, minlength=len(edges) - 1)
    return {**told, "edges": edges.tolist(), "counts": counts.tolist()}
