"""What an exported policy takes and gives: the same for every format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollstream.errors import ConfigError
from rollstream.graph.declare import Component
from rollstream.graph.inputs import Input, flat_inputs
from rollstream.spaces import Leaf

__all__ = ["ExportedApi", "Signature", "signature_of"]

ExportedApi = Literal["greedy", "act"]
HIDDEN = "latent."
"""Columns that only a loss reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Attributes:
    api: `greedy` (the most probable action) or `act` (a sampled one, from noise that is an input).
    rows: number of observations that a call takes; None: any.
    inputs: observation columns, what a recurrent policy remembers, noise and settings.
    actions: leaves of the action space; outputs of these names are in the environment's own values and dtypes.
    """

    api: ExportedApi
    rows: int | None
    inputs: tuple[Input, ...]
    actions: tuple[Leaf, ...]

    def outputs(self, columns: Sequence[str]) -> dict[str, str]:
        """Names of the outputs, by the column that the policy gives: what is remembered goes in and comes out, as `next.<name>`."""
        taken = {item.name for item in self.inputs}
        return {name: f"next.{name}" if name in taken else name for name in columns if not name.startswith(HIDDEN)}

    def leaf(self, name: str) -> Leaf | None:
        """The action leaf of this name, if it is one."""
        return next((leaf for leaf in self.actions if leaf.name == name), None)

    def described_inputs(self) -> list[dict[str, Any]]:
        """For the metadata."""
        return [
            {
                "name": item.name,
                "dtype": item.dtype,
                "shape": ["rows" if self.rows is None else self.rows, *item.shape] if item.per_row else list(item.shape),
                "role": item.role,
                **({"noise": item.noise} if item.role == "noise" else {}),
            }
            for item in self.inputs
        ]


def signature_of(policy: Component, *, actions: tuple[Leaf, ...], api: ExportedApi, rows: int | None) -> Signature:
    """The signature of `policy`.

    Raises:
        ConfigError: it has no such API, or fewer than one row are asked for.
    """
    if api not in policy.apis:
        raise ConfigError(f"{type(policy).__name__} has no API {api!r} to export; it has {', '.join(policy.apis)}")
    if rows is not None and rows < 1:
        raise ConfigError(f"an exported policy takes at least 1 row, got {rows}")
    return Signature(api=api, rows=rows, inputs=tuple(flat_inputs(policy.arguments(api))), actions=actions)
