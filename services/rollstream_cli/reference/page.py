"""The whole page, section by section."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from typing import get_args

from rollstream import errors
from rollstream.algorithms import settings_type
from rollstream.algorithms.registry import ALGORITHMS
from rollstream.config import ExperimentSpec
from rollstream.metrics import Report
from rollstream.metrics.names import METRICS
from rollstream.replay import TableSpec
from rollstream.replay.limiter_spec import Limiter
from rollstream.replay.selector_spec import Sampler
from rollstream_cli.reference.commands import command_sections
from rollstream_cli.reference.markdown import code, section, table
from rollstream_cli.reference.models import environment_variables, fields_table, settings_of
from rollstream_cli.reference.results import REPLAY_BENCH_KEYS, SUMMARY_KEYS, TABLE_KEYS, TRAIN_BENCH_KEYS, Key

__all__ = ["page"]

ROLES = ("control", "replay", "learner", "actor")
INTRODUCTION = """# Reference

Written by `make docs` from the code; a test compares. For explanations see [operations](operations.md),
[algorithms](algorithms.md) and the [REST API](rest-api.md)."""
COMMAND_LINE_VARIABLES = (
    ("ROLLSTREAM_URL", "URL of the cell that a command means; as `--url`."),
    ("ROLLSTREAM_TOKEN", "Bearer token for that cell; as `--token`."),
    ("ROLLSTREAM_REDIS_URL", "With it `train`, `up` and `bench` use this Redis instead of starting one."),
    ("ROLLSTREAM_OPERATOR_TOKEN", "Token of the cells that `train`, `up` and `bench` start; else a random one."),
)
CACHE_VARIABLE = (
    "ROLLSTREAM_CACHE_DIRECTORY",
    "Folder of compiled updates, of JAX's programs and of what mode `auto` measured; by default `rollstream` in the user's cache folder "
    "(`XDG_CACHE_HOME`, or `~/.cache`).",
)


def page() -> str:
    """`docs/reference.md`."""
    parts = [
        INTRODUCTION,
        section("Environment variables", *_variables()),
        section("Experiment spec", "One YAML or JSON document; the same everywhere.", fields_table(ExperimentSpec)),
        *(section(f"Settings of {name}", fields_table(settings_type(name))) for name in ALGORITHMS),
        section("Replay tables", *_tables()),
        section("Commands", command_sections()),
        section("Exit codes", "Of commands and of services.", _exit_codes()),
        section("JSON results", *_results()),
        section("Metrics", "At `/metrics` of every process; counters carry the suffix `_total`.", _metrics()),
    ]
    return "\n\n".join(parts) + "\n"


def _variables() -> list[str]:
    common = settings_of("service")
    parts = [
        "Processes read them when they start. One that is misspelt by one character is refused; a wrong value is refused by name.",
        section("Every service", environment_variables(common), level=3),
    ]
    for role in ROLES:
        title = f"{role.title()} (`python -m rollstream_{role}`)"
        parts.append(section(title, environment_variables(settings_of(role), without=common), level=3))
    named, meaning = CACHE_VARIABLE
    parts.append(
        section("Graph (a learner, and your own scripts)", table(("name", "meaning"), [(code(named), meaning)]), level=3)
    )
    rows = [(code(name), told) for name, told in COMMAND_LINE_VARIABLES]
    lead = "`train`, `up` and `bench` hand all `ROLLSTREAM_...` variables on to the processes that they start."
    return [*parts, section("Command line", lead, table(("name", "meaning"), rows), level=3)]


def _tables() -> list[str]:
    parts = ["What an algorithm's `agent.py` declares, and what a shard is asked to serve.", fields_table(TableSpec)]
    for title, union in (("Samplers and removers", Sampler), ("Limiters", Limiter)):
        parts.append(f"### {title}")
        for model in get_args(get_args(union)[0]):
            parts.append(f"**{code(model.__name__)}** {inspect.cleandoc(model.__doc__ or '')}")
            if len(model.model_fields) > 1:
                parts.append(fields_table(model, leave_out=("kind",)))
    return parts


def _exit_codes() -> str:
    rows = [
        ("0", "Done; of a service: told to stop, and stopped."),
        ("1", "The run failed, or anything else went wrong that no other code stands for; the message says what."),
    ]
    for found in (getattr(errors, name) for name in errors.__all__):
        if found is not errors.RollstreamError and "exit_code" in vars(found):
            rows.append((str(found.exit_code), (inspect.getdoc(found) or "").split("\n\n")[0]))
    rows = [*sorted(rows), ("130", "A command was interrupted (Ctrl-C, SIGTERM, SIGHUP); `train` says how to resume.")]
    return table(("code", "meaning"), rows)


def _results() -> list[str]:
    return [
        "Numbers that are not known are `null`, never NaN.",
        section("Summary of a run", "`runs/<id>/summary.json`, and `--json` of `train`.", _keys(SUMMARY_KEYS), level=3),
        section("`rollstream bench train`", _keys(TRAIN_BENCH_KEYS), level=3),
        section("`rollstream bench replay`", _keys(REPLAY_BENCH_KEYS), level=3),
        section("A replay table", "In `tables` of a summary and of a report.", _keys(TABLE_KEYS), level=3),
        section(
            "A report",
            "`runs/<id>/reports.jsonl`, one a line, and `GET /v1/experiments/{id}/reports`.",
            table(("key", "meaning"), _report_rows()),
            level=3,
        ),
    ]


def _keys(keys: Sequence[Key]) -> str:
    return table(("key", "unit", "meaning"), [(code(key.name), key.unit, key.meaning) for key in keys])


def _report_rows() -> list[tuple[str, str]]:
    return [(code(field.name), REPORT_MEANINGS[field.name]) for field in dataclasses.fields(Report)]


REPORT_MEANINGS = {
    "experiment": "Id of the run.",
    "spec_hash": "16 hex digits that change with any field of the spec.",
    "release": "Version of Rollstream.",
    "number": "Counts the reports of a run from 1.",
    "wall_s": "Seconds that the run has run.",
    "env_steps": "Environment steps sampled so far.",
    "env_steps_per_s": "Sampled per second since the report before.",
    "env_steps_trained": "Environment steps trained on so far.",
    "env_steps_trained_per_s": "Trained on per second since the report before.",
    "updates": "Optimizer steps so far.",
    "updates_per_s": "Optimizer steps per second since the report before.",
    "episodes": "Training episodes that ended so far.",
    "mean_return": "Mean return of the last 100 of them.",
    "mean_episode_steps": "Their mean length in environment steps.",
    "version": "Newest published weights.",
    "lag": "Mean age in versions of the weights that acted, over the rows trained on since the report before.",
    "max_lag": "The largest of these ages.",
    "waits": "Seconds waited since the report before, by `who -> for whom`.",
    "bottleneck": "Who waits for whom most, in words, e.g. `learner waits for actors: 71 % of the time`; empty until it is known.",
    "metrics": "Losses and whatever else steps report.",
    "counters": "All counters, by key.",
    "tables": "What each replay table says about itself.",
}
"""A report's fields are explained to developers in its docstring; here to those who read its JSON."""


def _metrics() -> str:
    rows = [
        (code(metric.name), metric.kind, metric.unit, ", ".join(code(label) for label in metric.labels), metric.sentence)
        for metric in METRICS
    ]
    return table(("name", "kind", "unit", "labels", "meaning"), rows)
