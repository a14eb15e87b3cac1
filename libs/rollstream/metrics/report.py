"""A report: where a run stands at one moment, in plain numbers with units. What a number cannot be told is `None`, never NaN.

One report a few seconds goes to Redis, to the run directory and to the terminal; its JSON form is the same everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import msgspec

from rollstream.errors import SchemaMismatch

__all__ = ["Report", "finite_or_none"]


def finite_or_none(value: float | None) -> float | None:
    """The value, or None when it is NaN or infinite: what a mean over nothing should have been."""
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Where a run stands. Rates are over the time since the previous report; totals are since the run began.

    Attributes:
        experiment, spec_hash, release: of which run, under which spec, by which release of Rollstream.
        number: counts reports of a run from 1.
        wall_s: seconds that the run has run.
        env_steps: environment steps sampled. `env_steps_trained`: those trained on.
        episodes: training episodes that ended.
        mean_return, mean_episode_steps: of the last finished training episodes; None before one finished.
        version: newest published weights.
        lag, max_lag: mean and largest age, in versions, of the weights that acted, over the rows trained on since the last
            report; None when there were none.
        waits: seconds waited since the last report, by `who -> for whom`.
        bottleneck: who waits for whom most, in words; empty until it is known.
        metrics: losses and whatever else steps report.
        counters: all counters, by key.
        tables: what each replay table says about itself.
    """

    experiment: str = ""
    spec_hash: str = ""
    release: str = ""
    number: int = 0
    wall_s: float = 0.0
    env_steps: int = 0
    env_steps_per_s: float | None = None
    env_steps_trained: int = 0
    env_steps_trained_per_s: float | None = None
    updates: int = 0
    updates_per_s: float | None = None
    episodes: int = 0
    mean_return: float | None = None
    mean_episode_steps: float | None = None
    version: int = 0
    lag: float | None = None
    max_lag: float | None = None
    waits: Mapping[str, float] = field(default_factory=dict)
    bottleneck: str = ""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for declared in fields(self):
            value = getattr(self, declared.name)
            clean = _clean(value)
            if clean is not value:
                object.__setattr__(self, declared.name, clean)

    def to_json(self) -> dict[str, Any]:
        """Plain data: what Redis, the REST API and the JSON lines file hold."""
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        """The report in `data`; unknown fields (of a newer release) are passed over."""
        try:
            return msgspec.convert(dict(data), Report)
        except msgspec.ValidationError as error:
            raise SchemaMismatch(f"not a report: {error}") from error


def _clean(value: Any) -> Any:
    """`value` with plain Python numbers, None for those that are not finite; the same object when there is nothing to do."""
    if isinstance(value, Mapping):
        clean = {key: _clean(entry) for key, entry in value.items()}
        return clean if any(clean[key] is not value[key] for key in clean) else value
    if hasattr(value, "item") and not isinstance(value, str):  # a NumPy scalar
        value = value.item()
    return finite_or_none(value) if isinstance(value, float) else value
