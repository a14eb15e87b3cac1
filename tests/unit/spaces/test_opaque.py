"""Types of bytes, made without Python code of NumPy's, in which an interrupt would be lost."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from rollstream.spaces.opaque import opaque


def test_it_is_the_type_of_so_many_bytes() -> None:
    assert [opaque(size) for size in (0, 1, 24)] == [np.dtype((np.void, size)) for size in (0, 1, 24)]


def test_numpy_asks_no_python_code_for_it() -> None:
    asked: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and str(frame.f_globals.get("__name__")).startswith("numpy"):
            asked.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        opaque(8)
    finally:
        sys.setprofile(None)
    assert asked == []
