"""What happens to an observation before a network sees it, as part of the graph: acting, evaluation, export and training all run it,
so none can forget it.

    observation (the environment's) --chain of each leaf--> observation (`output_leaves`) --> Torso
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

from rollstream.config import suggestion
from rollstream.errors import SpaceError
from rollstream.graph.components.image import Channels
from rollstream.graph.components.preprocessing.chain import Chains, Part
from rollstream.graph.components.preprocessing.running_normalizer import RunningNormalizer
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Leaf

__all__ = ["Preprocessing"]


@dataclass(frozen=True)
class Preprocessing:
    """See the module.

    Attributes:
        observation: leaves of the observation space.
        chains: what is done to each leaf, by its name; others stay as they are.
        channels: where the channels of images are.
    """

    observation: tuple[Leaf, ...]
    _: KW_ONLY
    chains: Chains = field(default_factory=dict)
    channels: Channels = "auto"

    def __post_init__(self) -> None:
        names = [leaf.name for leaf in self.observation]
        for name in self.chains:
            if name not in names:
                raise SpaceError(f"{name}: preprocessing names no leaf of the observation{suggestion(name, names)}")
        _ = self.output_leaves  # what does not fit is refused now

    @property
    def output_leaves(self) -> tuple[Leaf, ...]:
        """The leaves after it: what a Torso is made for."""
        return tuple(leaf for _, leaf in self._placed.values())

    @property
    def has_state(self) -> bool:
        """Whether it must `observe` rows."""
        return any(isinstance(part, RunningNormalizer) for parts, _ in self._placed.values() for part in parts)

    @api
    def output(self, scope: Scope, observation: Mapping[str, Array]) -> dict[str, Array]:
        """Columns [B, ...] (or [B, T, ...]) by leaf name to columns of the same names."""
        return {leaf.name: self._leaf(scope, leaf, observation[leaf.name], None) for leaf in self.observation}

    @api
    def observe(self, scope: Scope, observation: Mapping[str, Array], weight: Array) -> None:
        """Let normalizers see rows: columns [B, ...] by leaf name, each counting `weight` [B] (0: it is padding)."""
        for leaf in self.observation:
            self._leaf(scope, leaf, observation[leaf.name], weight)

    def _leaf(self, scope: Scope, leaf: Leaf, x: Array, weight: Array | None) -> Array:
        parts, after = self._placed[leaf.name]
        if not parts:
            return x
        lead = tuple(x.shape[: len(x.shape) - len(leaf.shape)])
        if len(lead) > 1:
            x = scope.ops.reshape(x, (lead[0] * lead[1], *leaf.shape))
        place = scope.child(leaf.name)
        for number, part in enumerate(parts):
            below = place.child(str(number))
            if weight is not None and isinstance(part, RunningNormalizer):
                part.observe(below, x, weight)
            x = part.output(below, x)
        return scope.ops.reshape(x, (*lead, *after.shape)) if len(lead) > 1 else x

    @cached_property
    def _placed(self) -> dict[str, tuple[tuple[Part, ...], Leaf]]:
        """By leaf name, the components of its chain, and the leaf after them."""
        placed = {}
        for leaf in self.observation:
            parts, after = [], leaf
            for link in self.chains.get(leaf.name, ()):
                part, after = link.part(after, self.channels)
                parts.append(part)
            placed[leaf.name] = (tuple(parts), after)
        return placed
