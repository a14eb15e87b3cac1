"""The learning half of algorithms with critics and an actor over a table: noise for each update, and a target that follows slowly.

table ─▶ n-step transitions ─▶ + noise columns ─▶ update ─▶ target += share (parameters - target)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.algorithms.recordings import Recording
from rollstream.algorithms.settings import OffPolicySettings, PolyakSettings
from rollstream.algorithms.updating import Updating
from rollstream.graph import Loss
from rollstream.graph.inputs import flat_inputs
from rollstream.learning import SampledItems
from rollstream.replay import n_step
from rollstream.seeding import child_generator
from rollstream.spaces import Columns

__all__ = ["PolyakUpdating", "recordings"]


def recordings(config: OffPolicySettings) -> dict[str, Recording]:
    """What the table begins with, by its name: `config.offline`."""
    return {"replay": Recording(source=config.offline, steps=config.n_step)} if config.offline else {}


class PolyakUpdating(Updating):
    """Adds to `Updating` what losses with actors and critics need. Generator and parameters are saved, so a resumed run goes on
    with the same noise."""

    def __init__(self, name: str, loss: Loss, config: PolyakSettings, *, seed: int) -> None:
        super().__init__(name, loss, config, batch_rows=config.batch_items, seed=seed)
        self._polyak = config
        self._generator = child_generator(seed, name, "noise")
        inputs = flat_inputs(loss.arguments("loss"))
        self._noise = {item.name: item for item in inputs if item.name.partition(".")[0].endswith("noise")}

    def columns(self, sample: SampledItems, *, env_steps: int) -> Columns:
        return n_step(sample.rows, sample.lengths, discount=self._polyak.discount, lead=sample.lead)

    def with_noise(self, columns: Columns) -> dict[str, npt.NDArray[Any]]:
        """`columns` and the noise that the loss takes, drawn anew: standard normal, or uniform in [0, 1)."""
        drawn: dict[str, npt.NDArray[Any]] = {}
        for name, item in self._noise.items():
            draw = self._generator.standard_normal if item.noise == "normal" else self._generator.random
            drawn[name] = draw((self._polyak.batch_items, *item.shape), dtype=np.float32)
        return {**columns, **drawn}

    def sync_target(self) -> None:
        """Move the target network by `target_share` of the way to the parameters."""
        self.update.sync_target(share=self._polyak.target_share)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "noise": self._generator.bit_generator.state}

    def restore(self, state: Mapping[str, Any]) -> None:
        super().restore(state)
        if "noise" in state:  # not in a checkpoint of another algorithm, whose parameters are taken up
            self._generator.bit_generator.state = state["noise"]
