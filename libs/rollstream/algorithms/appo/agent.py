"""What is optimized in APPO: IMPALA's policy, by the clipped surrogate on V-trace advantages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollstream.algorithms.appo.config import AppoConfig
from rollstream.algorithms.impala.agent import VtraceLearning, vtrace_policy
from rollstream.graph.losses import ClippedVtraceLoss
from rollstream.learning import LearningAgent
from rollstream.spaces import Column, Leaf, RowSpec

__all__ = ["AppoAgent"]


class AppoAgent:
    """APPO for one environment, given by its leaves."""

    table_names: tuple[str, ...] = ()

    def __init__(self, config: AppoConfig, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.policy = vtrace_policy(config, observation=observation, actions=actions)

    @property
    def loss(self) -> ClippedVtraceLoss:
        config = self.config
        return ClippedVtraceLoss(
            self.policy,
            steps=config.sequence_steps,
            lambda_=config.vtrace_lambda,
            rho_clip=config.rho_clip,
            c_clip=config.c_clip,
            worker_clip=config.worker_clip,
        )

    @property
    def extra_columns(self) -> tuple[Column, ...]:
        return self.policy.extra_columns

    def tables(self, rows: RowSpec) -> Mapping[str, Any]:
        return {}

    def learning(self, *, seed: int) -> LearningAgent:
        config = self.config
        scalars = {
            "clip_ratio": config.clip_ratio,
            "value_coefficient": config.value_coefficient,
            "entropy_coefficient": config.entropy_coefficient,
            "kl_coefficient": config.kl_coefficient,
        }
        return VtraceLearning("appo", self.loss, config, scalars=scalars, epochs=config.epochs, seed=seed)
