"""A type of so many bytes, to copy values whole and not field by field.

It is made from a text: `np.dtype((np.void, 8))` asks a Python function of NumPy's and forgets whatever that raises, so a Ctrl-C that
came just then was lost.
"""

from __future__ import annotations

import numpy as np

__all__ = ["opaque"]


def opaque(size_bytes: int) -> np.dtype[np.void]:
    """The type of `size_bytes` bytes without a meaning.

    >>> opaque(8)
    dtype('V8')
    """
    return np.dtype(f"V{size_bytes}")
