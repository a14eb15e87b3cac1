"""A policy without chance: it always does what another policy would do at its best. For search in the space of parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.ops import Array
from rollstream.graph.policies.actor_critic import ActorCriticPolicy
from rollstream.graph.policies.masks import Masks
from rollstream.graph.scope import Scope, api
from rollstream.spaces import Column, Leaf

__all__ = ["GreedyPolicy"]


@dataclass(frozen=True)
class GreedyPolicy:
    """`act` is `greedy` of `inner`, whose parameters are its own. Exploration is left to whoever perturbs the parameters."""

    inner: ActorCriticPolicy

    @property
    def observation(self) -> tuple[Leaf, ...]:
        """Leaves of the observation space."""
        return self.inner.observation

    @property
    def apis(self) -> tuple[str, ...]:
        return ("act", "greedy", *(name for name in self.inner.apis if name == "observe"))

    def arguments(self, api: str) -> Arguments:
        return self.inner.arguments("greedy" if api == "act" else api)

    @property
    def action_columns(self) -> tuple[Input, ...]:
        """Actions as rows hold them."""
        return self.inner.action_columns

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        """Rows need nothing besides."""
        return ()

    @property
    def memory(self) -> tuple[Column, ...]:
        """Nothing is remembered from step to step."""
        return ()

    @property
    def masks(self) -> Masks:
        """Which actions are allowed."""
        return self.inner.masks

    @api
    def act(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The best actions, columns [B, ...]."""
        return self.inner.greedy(scope, observation=observation)

    @api
    def greedy(self, scope: Scope, *, observation: Mapping[str, Array]) -> dict[str, Array]:
        """The best actions, columns [B, ...]."""
        return self.inner.greedy(scope, observation=observation)

    @api
    def observe(self, scope: Scope, *, observation: Mapping[str, Array], weight: Array) -> dict[str, Array]:
        """Take rows of weight [B] (0: padding) into the statistics of a normalizer."""
        return self.inner.observe(scope, observation=observation, weight=weight)
