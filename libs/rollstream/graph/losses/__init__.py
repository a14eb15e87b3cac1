"""Losses: what is minimized, as pure functions of a policy's outputs and columns of experience."""

from rollstream.graph.losses.double_q import DoubleQLoss
from rollstream.graph.losses.loss import Loss, LossResult, Network
from rollstream.graph.losses.ppo import PpoLoss

__all__ = ["DoubleQLoss", "Loss", "LossResult", "Network", "PpoLoss"]
