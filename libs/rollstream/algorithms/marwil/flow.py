"""What flows where in MARWIL: the same as in behavior cloning."""

from __future__ import annotations

from rollstream.algorithms.bc.flow import flow

__all__ = ["flow"]
