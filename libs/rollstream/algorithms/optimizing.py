"""From settings to the optimizer and its learning rate: the same in every algorithm.

    optimizer: {kind: adamw, weight_decay: 0.01}
    learning_rate_schedule: {kind: cosine, start: 1.0e-3, end: 0.0, over_steps: 1_000_000}
    learning_rate_groups: {"value_torso.*": 2.0}

The rate is a function of the experiment's counter of environment steps, so a run that is resumed goes on where it was.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Protocol, TypeAlias

from pydantic import BeforeValidator

from rollstream.algorithms.schedule import linear
from rollstream.config import suggestion
from rollstream.errors import ConfigError
from rollstream.graph.optimizers import Adam, AdamW, Optimizer, RmsProp, Sgd, schedule

__all__ = ["LearningRateSettings", "OptimizerForm", "ScheduleForm", "learning_rate", "optimizer"]

FINAL_LEARNING_RATE_SHARE = 0.1
_KINDS: Mapping[str, type[Any]] = {"adam": Adam, "adamw": AdamW, "rmsprop": RmsProp, "sgd": Sgd}


def optimizer(form: str | Mapping[str, Any]) -> Optimizer:
    """An optimizer from its short form: its kind, or a mapping of the kind and settings.

    >>> optimizer({"kind": "sgd", "momentum": 0.9})
    Sgd(momentum=0.9, nesterov=False, weight_decay=0.0)

    Raises:
        ConfigError: an unknown kind, or a setting that the kind does not know or allow.
    """
    settings = {"kind": form} if isinstance(form, str) else dict(form)
    kind = str(settings.pop("kind", ""))
    made = _KINDS.get(kind)
    if made is None:
        raise ConfigError(f"an optimizer cannot be of kind {kind!r}{suggestion(kind, list(_KINDS))}")
    known = {field.name: type(field.default) for field in fields(made)}
    for name, value in settings.items():
        if name not in known:
            raise ConfigError(f"optimizer {kind} has no setting {name!r}{suggestion(name, list(known))}")
        if known[name] is not _kind_of(value):
            raise ConfigError(f"{name} of optimizer {kind} must be a {known[name].__name__}, got {value!r}")
    built: Optimizer = made(**settings)
    return built


def _kind_of(value: Any) -> type[Any] | None:
    """bool, or float for every finite number; None for what no setting can be."""
    if isinstance(value, bool):
        return bool
    return float if isinstance(value, (int, float)) and math.isfinite(value) else None


class LearningRateSettings(Protocol):
    """What the settings of an algorithm have to say about the learning rate."""

    @property
    def learning_rate(self) -> float: ...

    @property
    def learning_rate_decay_steps(self) -> int | None: ...

    @property
    def learning_rate_schedule(self) -> Mapping[str, Any] | None: ...


def learning_rate(settings: LearningRateSettings, *, env_steps: int) -> float:
    """The rate at `env_steps`: by the schedule when there is one, else constant, or falling to a tenth."""
    if settings.learning_rate_schedule is not None:
        return schedule(settings.learning_rate_schedule).at(env_steps)
    return linear(
        settings.learning_rate,
        settings.learning_rate * FINAL_LEARNING_RATE_SHARE,
        env_steps=env_steps,
        over_steps=settings.learning_rate_decay_steps,
    )


def _number(value: Any) -> Any:
    """YAML reads `1e-3` as text."""
    if isinstance(value, list):
        return [_number(part) for part in value]
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _numbers(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {name: part if name == "kind" else _number(part) for name, part in value.items()}


def _optimizer_form(value: Any) -> Any:
    form = {"kind": value} if isinstance(value, str) else _numbers(value)
    if isinstance(form, Mapping):
        try:
            optimizer(form)
        except ConfigError as error:
            raise ValueError(str(error)) from error
    return form


def _schedule_form(given: Any) -> Any:
    value = _numbers(given)
    if isinstance(value, Mapping):
        try:
            rates = [schedule(value).at(count) for count in (0.0, math.inf)]
        except ConfigError as error:
            raise ValueError(str(error)) from error
        if not all(math.isfinite(rate) and rate >= 0.0 for rate in rates):
            raise ValueError(f"a learning rate must be finite and >= 0, got {rates[0]:g} at first and {rates[1]:g} in the end")
    return value


OptimizerForm: TypeAlias = Annotated[dict[str, Any], BeforeValidator(_optimizer_form)]
"""A type for settings: an optimizer that can be made."""

ScheduleForm: TypeAlias = Annotated[dict[str, Any], BeforeValidator(_schedule_form)]
"""A type for settings: a schedule of learning rates that can be made."""
