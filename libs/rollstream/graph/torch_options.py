"""What `build_update` can be told of the torch modes beside their names. Here, and not beside torch, because it is read before torch is."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError

__all__ = ["Ranks", "TorchOptions"]


class Ranks(Protocol):
    """Processes that share one learner's updates; see `backends.torch.parallel`."""

    def require_equal(self, parameters: npt.NDArray[np.float32]) -> None:
        """Raise `ConfigError` when ranks start from different parameters."""
        ...

    def add_up(self, packed: Any) -> None:
        """Put the sum over all ranks into the vector `packed` of each of them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchOptions:
    """Attributes:
    device: `cpu`, `cuda` or `cuda:N`; the state lies there.
    mixed_precision: matrix products and convolutions in bfloat16, everything else in float32.
    accumulate: parts in which a minibatch is computed, one after the other; the gradient is that of the whole.
    ranks: processes that share the update; None: this one alone.
    cache: folder of compiled updates (mode `auto`); None: see `modes.background`.
    """

    device: str = "cpu"
    mixed_precision: bool = False
    accumulate: int = 1
    ranks: Ranks | None = None
    cache: Path | None = None

    def require_none(self, mode: str) -> None:
        """Raise `ConfigError` that names the first option that `mode` does not have."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default and field.name != "cache":
                raise ConfigError(f"mode {mode!r} does not know {field.name}, got {value!r}; use mode 'torch' or 'torch-graph'")

    def require_fitting(self, *, batch_rows: int) -> None:
        """Raise `ConfigError` when a minibatch cannot be computed in so many parts."""
        if self.accumulate < 1 or batch_rows % self.accumulate:
            raise ConfigError(
                f"accumulate must be >= 1 and divide batch_rows {batch_rows}, got {self.accumulate}: "
                "a minibatch is computed in that many equal parts"
            )
