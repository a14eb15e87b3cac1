"""The experiment spec from a file and from options: `--set key=value` reaches the settings and the spec."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rollstream.config import ExperimentSpec, load, suggestion
from rollstream.errors import ConfigError, Problem

__all__ = ["SpecOptions", "build_spec", "parse_value", "read_document"]

SCIENTIFIC = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+")
"""`1e-3` is text in YAML 1.1; everybody means the number."""
NAME_MAX = 42


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecOptions:
    """What was given on the command line; None or empty: not given, so the file's value or the default holds."""

    algorithm: str | None = None
    environment: str | None = None
    file: Path | None = None
    name: str | None = None
    actors: int | None = None
    envs_per_actor: int | None = None
    seed: int | None = None
    stop_return: float | None = None
    stop_steps: int | None = None
    stop_updates: int | None = None
    overrides: Sequence[str] = ()
    from_checkpoint: str | None = None


def build_spec(options: SpecOptions, *, base: Mapping[str, Any] | None = None) -> ExperimentSpec:
    """The spec that file, options and overrides make together, the later over the earlier.

    Args:
        base: a document to start from instead of the file's, e.g. that of a run which is continued.

    Raises:
        ConfigError: lists every bad field.
    """
    document: dict[str, Any] = dict(base) if base is not None else {}
    if options.file is not None:
        document = read_document(options.file)
    for path, value in {
        "algorithm": options.algorithm,
        "environment.id": options.environment,
        "name": options.name,
        "actors": options.actors,
        "envs_per_actor": options.envs_per_actor,
        "seed": options.seed,
        "stop.mean_return": options.stop_return,
        "stop.env_steps": options.stop_steps,
        "stop.updates": options.stop_updates,
        "from_checkpoint": options.from_checkpoint,
    }.items():
        if value is not None:
            _put(document, path, value)
    from rollstream.algorithms import takes_actors

    problems = _missing(document)
    settings_of = _settings_names(document, problems)
    for text in options.overrides:
        _override(document, text, settings_of, problems)
    if not problems and not takes_actors(str(document["algorithm"])):
        document.setdefault("actors", 0)
    if not problems:
        document.setdefault("name", _name_of(document))
    return _checked(document, problems)


def read_document(file: Path) -> dict[str, Any]:
    """The mapping in a YAML or JSON file."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise ConfigError(f"{file} must be a mapping of names to values, got {type(document).__name__}")
    return {str(name): value for name, value in document.items()}


def parse_value(text: str) -> Any:
    """A value on the command line, read as YAML.

    >>> parse_value("1e-3"), parse_value("[64, 64]"), parse_value("true"), parse_value("tanh"), parse_value("")
    (0.001, [64, 64], True, 'tanh', '')
    """
    if SCIENTIFIC.fullmatch(text):
        return float(text)
    if not text:
        return ""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"cannot read the value {text!r}: {' '.join(str(error).split())}") from error


def _missing(document: Mapping[str, Any]) -> list[Problem]:
    problems = []
    if not document.get("algorithm"):
        problems.append(Problem(path="algorithm", message="is required: `rollstream train ALGO`, or in the file"))
    environment = document.get("environment")
    if not environment or (isinstance(environment, Mapping) and not environment.get("id")):
        problems.append(Problem(path="environment.id", message="is required: --env ID, or in the file"))
    return problems


def _settings_names(document: Mapping[str, Any], problems: list[Problem]) -> list[str]:
    """Settings of the algorithm; empty when there is no such algorithm, which is a problem of its own."""
    from rollstream.algorithms import settings_type

    name = document.get("algorithm")
    if not isinstance(name, str) or not name:
        return []
    try:
        return list(settings_type(name).model_fields)
    except ConfigError as error:
        problems.append(Problem(path="algorithm", message=str(error)))
        return []


def _override(document: dict[str, Any], text: str, settings: Sequence[str], problems: list[Problem]) -> None:
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        problems.append(Problem(path=f"--set {text}", message="must be key=value"))
        return
    fields = list(ExperimentSpec.model_fields)
    first = key.split(".")[0]
    try:
        parsed = parse_value(value.strip())
    except ConfigError as error:
        problems.append(Problem(path=f"--set {key}", message=str(error)))
        return
    if first in settings:
        _put(document, f"settings.{key}", parsed)
    elif first in fields:
        _put(document, key, parsed)
    elif settings:  # without an algorithm nobody can say what is known
        problems.append(Problem(path=f"--set {key}", message=f"unknown setting{suggestion(first, [*settings, *fields])}"))


def _checked(document: Mapping[str, Any], problems: list[Problem]) -> ExperimentSpec:
    from rollstream.algorithms import known, settings_type, takes_actors

    if document.get("actors") == 0 and takes_actors(str(document.get("algorithm"))):
        problems.append(Problem(path="actors", message="Input should be greater than or equal to 1, got 0"))
    spec: ExperimentSpec | None = None
    listed = {problem.path for problem in problems}
    try:
        spec = load(ExperimentSpec, document, what="experiment spec")
    except ConfigError as error:
        problems += [entry for entry in error.problems if not _is_under(entry.path, listed)]
    settings = document.get("settings", {})
    if document.get("algorithm") in known() and isinstance(settings, dict):
        name = document["algorithm"]
        try:
            load(settings_type(name), settings, what=f"settings of {name}", path="settings")
        except ConfigError as error:
            problems += error.problems
    if problems or spec is None:
        lines = "; ".join(str(problem) for problem in problems)
        raise ConfigError(f"the experiment has {len(problems)} bad field(s): {lines}", problems=problems)
    return spec


def _is_under(path: str, listed: set[str]) -> bool:
    return any(path == known or known.startswith(f"{path}.") for known in listed)


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set a dotted path, copying what lies on the way."""
    *parents, last = path.split(".")
    for name in parents:
        inner = document.get(name)
        if name == "environment" and isinstance(inner, str):  # `environment: CartPole-v1` is not valid; say so by its type
            inner = {"id": inner}
        document[name] = dict(inner) if isinstance(inner, Mapping) else {}
        document = document[name]
    document[last] = value


def _name_of(document: Mapping[str, Any]) -> str:
    """`ppo-cartpole-v1`: readable, and allowed in ids."""
    environment = document["environment"]
    identity = environment.get("id", "") if isinstance(environment, Mapping) else environment
    text = re.sub(r"[^a-z0-9]+", "-", f"{document['algorithm']}-{identity}".lower())
    return text[:NAME_MAX].strip("-") or "experiment"
