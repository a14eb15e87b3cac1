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

__all__ = [
    "FINAL_PHASES",
    "CheckpointSpec",
    "EnvironmentSpec",
    "ExperimentSpec",
    "Frozen",
    "Phase",
    "StopRule",
    "load",
    "suggestion",
]
