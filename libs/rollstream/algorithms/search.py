"""Search in the space of parameters, shared by ES and ARS: settings, the policy without chance, and what a learner keeps.

actors: places of noise and returns ─▶ learner: noise from the table ─▶ direction [P] ─▶ optimizer ─▶ weights

No gradient is computed anywhere, and no gradient framework is imported.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from pydantic import Field

from rollstream.algorithms.observing import preprocessing
from rollstream.algorithms.optimizing import OptimizerForm, ScheduleForm, learning_rate, optimizer
from rollstream.algorithms.settings import NetworkSettings, ReportSettings
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.flow.steps.noise_table import NoiseTable
from rollstream.graph import ActorCriticPolicy
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.components.preprocessing.running_normalizer import Statistics, merge
from rollstream.graph.declare import declare
from rollstream.graph.layout import FlatLayout
from rollstream.graph.policies.greedy_policy import GreedyPolicy
from rollstream.learning import Learned
from rollstream.seeding import child_seed
from rollstream.spaces import Batch, Column, Columns, Leaf, RowSpec

__all__ = ["SearchAgent", "SearchLearning", "SearchSettings", "merged_statistics"]


class SearchSettings(NetworkSettings, ReportSettings):
    """Settings of search by perturbed weights."""

    deviation: float = Field(default=0.1, gt=0)
    """Standard deviation of the noise on every parameter; large enough that returns differ, small enough that they follow a slope."""
    learning_rate: float = Field(default=0.03, gt=0)
    """Step size of the optimizer."""
    learning_rate_decay_steps: int | None = Field(default=None, ge=1)
    """Environment steps over which the learning rate falls to a tenth, linearly; None keeps it constant."""
    learning_rate_schedule: ScheduleForm | None = None
    """In place of the two above, e.g. {"kind": "cosine", "start": 0.03, "end": 0, "over_steps": 1e6}; None: a line serves most tasks."""
    optimizer: OptimizerForm = Field(default_factory=lambda: {"kind": "adam"})
    """`adam`, `adamw`, `rmsprop` or `sgd`, or a mapping with its settings; Adam needs least care."""
    rollout_steps: int = Field(default=32, ge=1)
    """Vector steps at a time; copies whose episode is over are not watched before these are done."""
    episode_steps: int = Field(default=1_000, ge=1)
    """Vector steps after which an episode is cut, and counts for what it has got: the bound on how long a round waits."""
    noise_numbers: int = Field(default=1 << 22, ge=1_024, le=1 << 28)
    """Numbers in the noise table that actors and learner make from one seed; 4 million are 16 MB in each process."""
    noise_seed: int = Field(default=0, ge=0)
    """Seed of the noise table: it must be the same everywhere, so it is a setting."""


class SearchAgent:
    """The acting half: a policy for one environment, given by its leaves."""

    table_names: tuple[str, ...] = ()
    extra_columns: tuple[Column, ...] = ()
    name = "search"

    def __init__(self, config: Any, *, observation: tuple[Leaf, ...], actions: tuple[Leaf, ...]) -> None:
        self.config = config
        self.actions = actions
        self.noise = NoiseTable(seed=config.noise_seed, numbers=config.noise_numbers)
        self.policy = GreedyPolicy(
            ActorCriticPolicy(
                observation,
                actions,
                hidden=config.hidden,
                activation=config.activation,
                convolutions=config.convolutions,
                channels=config.channels,
                preprocessing=preprocessing(
                    observation, config.preprocessing, channels=config.channels, normalize=config.normalize_observations
                ),
                value=False,
            )
        )

    @property
    def loss(self) -> NoReturn:
        raise ConfigError(f"{self.name} has no loss: it moves weights by the returns of perturbed ones, and computes no gradient")

    def tables(self, rows: RowSpec) -> Mapping[str, Any]:
        """None."""
        return {}


class SearchLearning(ABC):
    """The learning half but for `direction`: the flat vector, the optimizer's moments, statistics of observations."""

    def __init__(self, agent: SearchAgent, *, seed: int) -> None:
        self._agent = agent
        self._settings = agent.config
        self._optimizer = optimizer(agent.config.optimizer)
        declared = declare(agent.policy)
        self._layout: FlatLayout = declared.layout
        self._state_layout: FlatLayout = declared.state_layout
        self._parameters = self._layout.init(child_seed(seed, agent.name, "parameters"))
        self._slots = [np.zeros(self._layout.size, np.float32) for _ in self._optimizer.slots]
        self._count = 0
        self._observed = self._state_layout.init(0)

    @abstractmethod
    def direction(self, noise: npt.NDArray[np.float32], returns: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The gradient of what is minimized, [P]; noise [M, P], returns [M, 2] of weights plus and minus `deviation` noise."""

    def learn(self, batch: Batch, *, env_steps: int) -> Learned:
        """One step from the returns of all pairs."""
        for column in ("noise_place", "returns"):
            if column not in batch.columns:
                raise SchemaMismatch(
                    f"{self._agent.name} learns from the column {column!r}, the batch has: {', '.join(batch.columns) or 'none'}; "
                    "put perturbations(...) at the source"
                )
        places, returns = batch.columns["noise_place"], batch.columns["returns"]
        noise = np.stack([self._agent.noise.at(int(place), size=self._layout.size) for place in places])
        gradient = self.direction(noise, returns)
        rate = learning_rate(self._settings, env_steps=env_steps)
        applied = self._step(gradient, learning_rate=rate)
        if applied and "seen" in batch.columns:
            self._observed = merged_statistics(self._state_layout, [self._observed, *batch.columns["seen"]])
        metrics = {
            "perturbed_return": float(returns.mean()),
            "perturbed_return_max": float(returns.max()),
            "perturbed_return_deviation": float(returns.std()),
            **({"gradient_norm": float(np.linalg.norm(gradient))} if applied else {}),
            "parameter_norm": float(np.linalg.norm(self._parameters)),
            "skipped_updates": float(not applied),
            "learning_rate": rate,
        }
        return Learned(updates=int(applied), metrics=metrics)

    def _step(self, gradient: npt.NDArray[np.float32], *, learning_rate: float) -> bool:
        """False when something would become not finite; nothing changes then."""
        with np.errstate(all="ignore"):
            moved = self._optimizer.step(
                NumpyOps(),
                self._parameters,
                tuple(self._slots),
                gradient,
                count=np.float32(self._count + 1),
                learning_rate=np.float32(learning_rate),
            )
        if not all(np.isfinite(vector).all() for vector in (moved.parameters, *moved.slots)):
            return False
        self._parameters = np.asarray(moved.parameters, np.float32)
        self._slots = [np.asarray(slot, np.float32) for slot in moved.slots]
        self._count += 1
        return True

    def columns(self, sample: Any, *, env_steps: int) -> Columns:
        """Refused: there is no table."""
        raise ConfigError(
            f"{self._agent.name} learns from episodes of perturbed weights, not from replay tables; use dqn for a table"
        )

    def tensors(self, *, env_steps: int) -> Mapping[str, npt.NDArray[np.float32]]:
        """What actors perturb."""
        views = {**self._layout.split(self._parameters), **self._state_layout.split(self._observed)}
        return {name: view.copy() for name, view in views.items()}

    def sync_target(self) -> None:
        """Refused: there is no target network."""
        raise ConfigError(f"{self._agent.name} has no target network to synchronize")

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        slots = dict(zip(self._optimizer.slots, self._slots, strict=True))
        return {"parameters": self._parameters, "slots": slots, "count": self._count, "observed": self._observed}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up what `state` gave."""
        self._layout.require_finite(state["parameters"])
        self._parameters = np.array(state["parameters"], np.float32)
        self._slots = [np.array(state["slots"][name], np.float32) for name in self._optimizer.slots]
        self._count = int(state["count"])
        self._observed = np.array(state["observed"], np.float32)


def merged_statistics(layout: FlatLayout, parts: Any) -> npt.NDArray[np.float32]:
    """The state [S] of normalizers that saw everything that those of `parts` ([S] each) saw; `layout` is of the policy's state."""
    merged = layout.init(0)
    views, split = layout.split(merged), [layout.split(part) for part in parts]
    for name in layout.names:
        prefix, _, last = name.rpartition(".")
        if last != "mean":
            continue
        found = merge(
            [
                Statistics(
                    count=float(part[f"{prefix}.count"]),
                    mean=part[name].astype(np.float64) + part[f"{prefix}.mean_rest"],
                    variance=part[f"{prefix}.variance"],
                )
                for part in split
                if float(part[f"{prefix}.count"])
            ]
            or [Statistics(count=0.0, mean=views[name], variance=views[f"{prefix}.variance"])]
        )
        views[f"{prefix}.count"][...] = found.count
        views[name][...] = found.mean
        views[f"{prefix}.mean_rest"][...] = found.mean - views[name]
        views[f"{prefix}.variance"][...] = found.variance
    return merged
