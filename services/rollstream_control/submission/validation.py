"""Is a document an experiment that can run here? Every bad field is found at once, each with its path.

Checks go as far as they can: a document with a wrong field still has its algorithm, its settings and its environment looked at.
Only what needs a correct neighbour (spaces need an environment, settings need an algorithm) waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from rollstream.config import EnvironmentSpec, ExperimentSpec, Frozen, load, suggestion
from rollstream.errors import ConfigError, Problem, SpaceError
from rollstream.spaces import Leaf
from rollstream_control.submission.document import bad_values

__all__ = ["Algorithms", "Inspected", "Inspector", "Validator"]


class Inspected(Protocol):
    """What an environment says about itself."""

    @property
    def observation_leaves(self) -> tuple[Leaf, ...]: ...
    @property
    def action_leaves(self) -> tuple[Leaf, ...]: ...


class Inspector(Protocol):
    """Looks at an environment without hurting control; None when it cannot be known here (its package is not installed)."""

    def inspect(self, spec: EnvironmentSpec) -> Inspected | None: ...


class Algorithms(Protocol):
    """The registry of algorithms, as far as validation needs it."""

    def known(self) -> Sequence[str]: ...
    def settings_type(self, name: str) -> type[Frozen]: ...
    def check(self, name: str, settings: Mapping[str, Any], inspected: Inspected) -> None:
        """Raise a `SpaceError` when the algorithm cannot act on these spaces, a `ConfigError` when it cannot run otherwise."""
        ...


class Validator:
    """Turns documents into specs. Thread-safe: it holds no state of its own."""

    def __init__(self, *, algorithms: Algorithms, inspector: Inspector) -> None:
        self._algorithms = algorithms
        self._inspector = inspector

    def validate(self, document: Mapping[str, Any]) -> ExperimentSpec:
        """The spec, or one `ConfigError` with all problems of the document."""
        problems = bad_values(document)
        if problems:  # pydantic's messages about such values would be noise
            raise _refusal(problems)
        spec: ExperimentSpec | None = None
        try:
            spec = load(ExperimentSpec, document, what="experiment spec")
        except ConfigError as error:
            problems += error.problems
        settings = self._settings(document, problems)
        inspected = self._environment(document, problems)
        if settings is not None and inspected is not None:
            self._trial(str(document["algorithm"]), settings, inspected, problems)
        if problems or spec is None:
            raise _refusal(problems)
        return spec

    def _settings(self, document: Mapping[str, Any], problems: list[Problem]) -> Mapping[str, Any] | None:
        """The settings when the algorithm accepts them."""
        name = document.get("algorithm")
        if not isinstance(name, str) or not name:
            return None
        known = self._algorithms.known()
        if name not in known:
            problems.append(Problem(path="algorithm", message=f"unknown algorithm {name!r}{suggestion(name, known)}"))
            return None
        given = document.get("settings", {})
        if not isinstance(given, dict):
            return None
        try:
            load(self._algorithms.settings_type(name), given, what=f"settings of {name}", path="settings")
        except ConfigError as error:
            problems += error.problems
            return None
        return given

    def _environment(self, document: Mapping[str, Any], problems: list[Problem]) -> Inspected | None:
        given = document.get("environment")
        if not isinstance(given, dict):
            return None
        try:
            spec = load(EnvironmentSpec, given, what="environment", path="environment")
        except ConfigError:  # listed already, with the whole document
            return None
        try:
            return self._inspector.inspect(spec)
        except ConfigError as error:
            problems += _under("environment.id", error)
            return None

    def _trial(self, name: str, settings: Mapping[str, Any], inspected: Inspected, problems: list[Problem]) -> None:
        try:
            self._algorithms.check(name, settings, inspected)
        except SpaceError as error:
            problems += _under("environment", error)
        except ConfigError as error:
            problems += _under("settings", error)


def _under(path: str, error: ConfigError) -> list[Problem]:
    """The problems of `error`; those without a path, or with one of something else, are put under `path`."""
    return [
        problem if problem.path.startswith(path.partition(".")[0]) else Problem(path=path, message=str(problem))
        for problem in error.problems
    ]


def _refusal(problems: Sequence[Problem]) -> ConfigError:
    listed = "; ".join(str(problem) for problem in problems)
    return ConfigError(f"experiment spec has {len(problems)} bad field(s): {listed}", problems=problems)
