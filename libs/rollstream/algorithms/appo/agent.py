"""What is optimized in APPO: IMPALA's policy, by the clipped surrogate on V-trace advantages."""

from __future__ import annotations

from rollstream.algorithms.appo.config import AppoConfig
from rollstream.algorithms.impala.agent import VtraceLearning, vtrace_policy
from rollstream.algorithms.on_policy import OnPolicyAgent
from rollstream.graph.losses import ClippedVtraceLoss
from rollstream.learning import LearningAgent
from rollstream.spaces import Leaf

__all__ = ["AppoAgent"]


class AppoAgent(OnPolicyAgent):
    """APPO for one environment, given by its leaves."""

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

    def learning(self, *, seed: int) -> LearningAgent:
        config = self.config
        scalars = {
            "clip_ratio": config.clip_ratio,
            "value_coefficient": config.value_coefficient,
            "entropy_coefficient": config.entropy_coefficient,
            "kl_coefficient": config.kl_coefficient,
        }
        return VtraceLearning("appo", self.loss, config, scalars=scalars, epochs=config.epochs, seed=seed)
