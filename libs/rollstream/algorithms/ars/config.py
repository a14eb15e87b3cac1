"""What can be set in ARS. Defaults are the paper's V2-t: a linear policy, normalized observations, the best directions only."""

from __future__ import annotations

from pydantic import Field, model_validator

from rollstream.algorithms.optimizing import OptimizerForm
from rollstream.algorithms.search import SearchSettings
from rollstream.graph.components.torso import Width

__all__ = ["ArsConfig"]


class ArsConfig(SearchSettings):
    """Settings of ARS; letters in brackets are those of Mania et al. 2018, table 9."""

    pairs: int = Field(default=16, ge=1)
    """Directions tried in a round, over all actors, each to both sides [N]."""
    top_pairs: int = Field(default=8, ge=1)
    """Directions that are used, those whose better side was best [b]; all of them is V1 or V2, fewer is V1-t or V2-t."""
    deviation: float = Field(default=0.05, gt=0)
    """Standard deviation of the noise on every parameter [nu]."""
    learning_rate: float = Field(default=0.02, gt=0)
    """Step size [alpha]."""
    optimizer: OptimizerForm = Field(default_factory=lambda: {"kind": "sgd"})
    """Plain steps, as in the paper: the deviation of the returns is what scales them."""
    hidden: tuple[Width, ...] = ()
    """Widths of hidden layers; none is the paper's linear policy."""
    normalize_observations: bool = True
    """Bring observations to mean 0 and deviation 1 by what all actors saw: V2. False is V1."""

    @model_validator(mode="after")
    def _best_among_all(self) -> ArsConfig:
        if self.top_pairs > self.pairs:
            raise ValueError(f"top_pairs ({self.top_pairs}) must be <= pairs ({self.pairs}): they are the best of them")
        return self
