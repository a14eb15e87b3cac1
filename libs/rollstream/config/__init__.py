"""Typed settings and specs."""

from rollstream.config.base import Frozen, load, suggestion
from rollstream.config.experiment import (
    FINAL_PHASES,
    CheckpointSpec,
    EnvironmentSpec,
    ExperimentSpec,
    Phase,
    StopRule,
)
from rollstream.config.policies import PolicySettings, agents_by_policy

__all__ = [
    "FINAL_PHASES",
    "CheckpointSpec",
    "EnvironmentSpec",
    "ExperimentSpec",
    "Frozen",
    "Phase",
    "PolicySettings",
    "StopRule",
    "agents_by_policy",
    "load",
    "suggestion",
]
