"""`values.schema.json` from the typed values: Helm refuses a misspelt or mistyped value before anything is installed.

Draft 7, because Helm 3 reads no later one. Helm calls every number a float and drops nulls; the schema allows for both.
"""

from __future__ import annotations

from typing import Any

from rollstream_control.chart.values import ChartValues

__all__ = ["values_schema"]

DRAFT = "http://json-schema.org/draft-07/schema#"
REQUIRED_OF_EXPERIMENT = ("algorithm", "environment")


def values_schema() -> dict[str, Any]:
    """The JSON schema of the chart's values."""
    schema = ChartValues.model_json_schema(ref_template="#/definitions/{model}", by_alias=True)
    definitions = schema.pop("$defs")
    for definition in definitions.values():
        _strip(definition)
    _strip(schema)
    schema["properties"]["experiment"] = _experiment(schema["properties"]["experiment"], definitions)
    return {"$schema": DRAFT, **schema, "definitions": dict(sorted(definitions.items()))}


def _experiment(field: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Nothing, or a whole spec: said so that a misspelt field is named (an `anyOf` would only say that nothing fits)."""
    spec = definitions.pop("ExperimentSpec")
    spec.pop("required")
    spec["description"] = field["description"]
    return {**spec, "if": {"minProperties": 1}, "then": {"required": list(REQUIRED_OF_EXPERIMENT)}}


def _strip(schema: dict[str, Any]) -> None:
    """Take defaults (they stand in values.yaml) and titles (they repeat the names) out of a schema and all schemas in it."""
    schema.pop("default", None)
    schema.pop("title", None)
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    parts += [schema[word] for word in ("items", "additionalProperties") if isinstance(schema.get(word), dict)]
    for part in parts:
        _strip(part)
