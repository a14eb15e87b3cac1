"""Where a component's numbers lie while it runs: parameters, those of the target network, and state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.graph.layout import FlatLayout

__all__ = ["NO_STATE", "Memory"]

NO_STATE = FlatLayout(())


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Flat vectors and their layouts. Executables look at these arrays where they are: changing them there is enough.

    Attributes:
        layout, flat: the parameters, float32 [P].
        target: parameters of the target network [P]; None: the same network.
        state_layout, state: what APIs remember from call to call (a running normalizer), float32 [S].
    """

    layout: FlatLayout
    flat: npt.NDArray[np.float32]
    target: npt.NDArray[np.float32] | None = None
    state_layout: FlatLayout = NO_STATE
    state: npt.NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def live_views(self) -> Mapping[str, npt.NDArray[Any]]:
        """Parameters by name."""
        return self.layout.split(self.flat)

    @property
    def target_views(self) -> Mapping[str, npt.NDArray[Any]]:
        """Parameters of the target network by name."""
        return self.layout.split(self.flat if self.target is None else self.target)

    @property
    def state_views(self) -> Mapping[str, npt.NDArray[Any]]:
        """State by name."""
        return self.state_layout.split(self.state)
