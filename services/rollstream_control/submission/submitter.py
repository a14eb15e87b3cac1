"""Takes experiments in: by request, once per idempotency key, and from a file, once per content."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollstream.config import ExperimentSpec, load
from rollstream.errors import ConfigError
from rollstream.store import Experiments, Store, keys
from rollstream_control.failure import Failure
from rollstream_control.submission.document import bad_values, parse_yaml
from rollstream_control.submission.validation import Validator

__all__ = ["Submitted", "Submitter"]

KEY_LIVES_S = 86_400
"""How long an idempotency key is remembered: a day, longer than any client retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """An experiment that is in the queue (or further), and whether this request put it there."""

    id: str
    created: bool


class Submitter:
    """Thread-safe.

    Args:
        draw: six fresh hex digits for an id.
    """

    def __init__(self, store: Store, *, validator: Validator, draw: Callable[[], str] = lambda: secrets.token_hex(3)) -> None:
        self._store = store
        self._experiments = Experiments(store)
        self._validator = validator
        self._draw = draw

    def submit(
        self, document: Mapping[str, Any], *, idempotency_key: str | None = None, wanted_id: str | None = None
    ) -> Submitted:
        """Validate and queue an experiment.

        Args:
            wanted_id: id that it shall have, which makes the request safe to repeat by itself; None: a fresh one.

        Raises:
            ConfigError: the document is wrong; lists every bad field.
            Failure: 409, the key or the id was used for another document.
        """
        if wanted_id is not None:
            return self._enter_as(wanted_id, self._validator.validate(document))
        if idempotency_key is None:
            spec = self._validator.validate(document)
            return self._enter(self._fresh_id(spec), spec)
        digest = _digest(document)
        claimed = self._claim_of(idempotency_key, digest)
        if claimed is not None and self._experiments.exists(claimed):
            return Submitted(id=claimed, created=False)
        spec = self._validator.validate(document)
        if claimed is None:
            claimed = self._claim(idempotency_key, digest, spec)
        return self._enter(claimed, spec)

    def submit_file(self, path: Path) -> Submitted:
        """Queue the experiment that a YAML file describes, unless one with the same name and content is known.

        The check comes before the validation of environment and spaces, so a restart of control costs nothing and an
        experiment that has ended stays ended.
        """
        what = f"experiment file {path}"
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{what} cannot be read: {error}; check ROLLSTREAM_EXPERIMENT_FILE") from error
        document = parse_yaml(text, what=what)
        problems = bad_values(document)
        if not problems:
            known = _id_by_content(load(ExperimentSpec, document, what=what))
            if self._experiments.exists(known):
                return Submitted(id=known, created=False)
        spec = self._validator.validate(document)
        return self._enter(_id_by_content(spec), spec)

    def _enter(self, experiment: str, spec: ExperimentSpec) -> Submitted:
        self._experiments.submit(experiment, spec)
        return Submitted(id=experiment, created=True)

    def _fresh_id(self, spec: ExperimentSpec) -> str:
        while True:
            experiment = f"{spec.name}-{self._draw()}"
            if not self._experiments.exists(experiment):
                return experiment

    def _enter_as(self, experiment: str, spec: ExperimentSpec) -> Submitted:
        created = not self._experiments.exists(experiment)
        try:
            self._experiments.submit(experiment, spec)
        except ConfigError as error:
            raise Failure(str(error), status=409, kind="id-taken") from error
        return Submitted(id=experiment, created=created)

    def _claim_of(self, key: str, digest: str) -> str | None:
        """The experiment that the key stands for; None when it is new."""
        reply = self._store.run("read an idempotency key", lambda client: client.get(keys.idempotency(key)))
        if reply is None:
            return None
        claim = json.loads(reply)
        if claim["digest"] != digest:
            raise Failure(
                f"Idempotency-Key {key!r} was used for another body (experiment {claim['experiment']}): use a new key for "
                "a new experiment",
                status=409,
                kind="idempotency-key-reused",
            )
        return str(claim["experiment"])

    def _claim(self, key: str, digest: str, spec: ExperimentSpec) -> str:
        """Bind the key to a fresh id, or take the id that another request bound it to meanwhile."""
        experiment = f"{spec.name}-{self._draw()}"
        claim = json.dumps({"digest": digest, "experiment": experiment})
        self._store.run(
            "bind an idempotency key", lambda client: client.set(keys.idempotency(key), claim, nx=True, ex=KEY_LIVES_S)
        )
        return self._claim_of(key, digest) or experiment


def _id_by_content(spec: ExperimentSpec) -> str:
    return f"{spec.name}-{spec.hash[:6]}"


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
