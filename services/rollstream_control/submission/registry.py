"""The registry of algorithms, as validation sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rollstream import algorithms
from rollstream.algorithms.trial import try_out
from rollstream.config import Frozen
from rollstream_control.submission.validation import Inspected

__all__ = ["RegisteredAlgorithms"]


class RegisteredAlgorithms:
    """Implements `validation.Algorithms`. Imports an algorithm's pages when asked for it: none needs torch."""

    def known(self) -> Sequence[str]:
        return algorithms.known()

    def settings_type(self, name: str) -> type[Frozen]:
        return algorithms.settings_type(name)

    def check(self, name: str, settings: Mapping[str, Any], inspected: Inspected) -> None:
        """The algorithm itself knows best what it can work with: it is built once, and thrown away."""
        try_out(name, settings, observation=inspected.observation_leaves, actions=inspected.action_leaves)
