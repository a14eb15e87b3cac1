"""The policy of a run, as its newest good checkpoint has it: what `export` writes to a file.

checkpoint ─▶ spec ─▶ spaces of the environment ─▶ agent ─▶ restored learning half ─▶ the tensors that it would publish
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from rollstream.acting import SCALAR_PREFIX
from rollstream.algorithms import make_agent, settings_type
from rollstream.algorithms.agent import Agent
from rollstream.checkpoint import LoadedCheckpoint, read_checkpoint, resolve
from rollstream.config import ExperimentSpec, load
from rollstream.envs import inspect_environment
from rollstream.errors import CheckpointError
from rollstream.spaces import Leaf
from rollstream_cli.allowed_modules import allowed_modules

__all__ = ["SavedPolicy", "read_saved_policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPolicy:
    """An agent and the tensors of its policy.

    Attributes:
        scalars: settings of acting that changed over time, e.g. epsilon.
    """

    agent: Agent
    observation: tuple[Leaf, ...]
    tensors: Mapping[str, npt.NDArray[Any]]
    scalars: Mapping[str, float]
    spec: ExperimentSpec
    checkpoint: LoadedCheckpoint

    def facts(self) -> dict[str, Any]:
        """Where it comes from, for the metadata."""
        manifest = self.checkpoint.record.manifest
        return {
            "rollstream": manifest["release"],
            "experiment": manifest["experiment"],
            "algorithm": self.spec.algorithm,
            "settings": load(settings_type(self.spec.algorithm), self.spec.settings, what="settings").model_dump(mode="json"),
            "environment": self.spec.environment.model_dump(mode="json"),
            "seed": self.spec.seed,
            "spec_hash": manifest["spec_hash"],
            "weights_version": manifest["version"],
            "env_steps": manifest["env_steps"],
            "updates": manifest["updates"],
            "checkpoint": self.checkpoint.record.number,
            "scalars": dict(self.scalars),
        }


def read_saved_policy(where: str, *, runs_dir: Path, environment: Mapping[str, str]) -> SavedPolicy:
    """The policy of a run (its folder or id) or of one checkpoint.

    Args:
        environment: variables of the process, for the modules from which environments may come.

    Raises:
        CheckpointError: there is no checkpoint that can be trusted.
        ConfigError, SpaceError, EnvironmentFault: the environment or the algorithm cannot be made here.
    """
    checkpoint = read_checkpoint(_found(where, runs_dir))
    manifest = checkpoint.record.manifest
    spec = ExperimentSpec.model_validate(manifest["spec"])
    seen = inspect_environment(spec.environment, allow=allowed_modules(environment, spec.environment.id))
    agent = make_agent(spec.algorithm, _eager(spec), observation=seen.observation_leaves, actions=seen.action_leaves)
    learning = agent.learning(seed=spec.seed)
    learning.restore(checkpoint.state["agent"])
    published = learning.tensors(env_steps=manifest["env_steps"])
    return SavedPolicy(
        agent=agent,
        observation=seen.observation_leaves,
        tensors={name: tensor for name, tensor in published.items() if not name.startswith(SCALAR_PREFIX)},
        scalars={
            name.removeprefix(SCALAR_PREFIX): float(tensor.reshape(-1)[0])
            for name, tensor in published.items()
            if name.startswith(SCALAR_PREFIX)
        },
        spec=spec,
        checkpoint=checkpoint,
    )


def _found(where: str, runs_dir: Path) -> Path:
    for place in (Path(where), runs_dir / where):
        if place.exists():
            return resolve(place).path
    raise CheckpointError(f"there is no run or checkpoint {where}, also not in {runs_dir}")


def _eager(spec: ExperimentSpec) -> dict[str, Any]:
    """The settings without a compiled update, which nobody is going to run; what is restored is the same in every mode."""
    return {**spec.settings, "mode": "torch"} if "mode" in settings_type(spec.algorithm).model_fields else dict(spec.settings)
