"""The API against its own OpenAPI document: generated requests, valid and invalid, never get an undocumented answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

EXAMPLES_PER_OPERATION = 12
TOKEN = "operate-it"


@pytest.fixture
def api(start_control: Any) -> Iterator[Any]:
    """The schema of a running control that asks for a token and has no backend."""
    with start_control(backend="none", operator_token=TOKEN) as control:
        # as everywhere on the web, query parameters that nobody asked for are ignored
        config = schemathesis.Config.from_dict({"generation": {"allow-extra-parameters": False}})
        yield schemathesis.openapi.from_url(f"{control.url}/openapi.json", config=config)


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_every_answer_is_as_documented(api: Any, mode: GenerationMode) -> None:
    # a spec may be of the right shape and still name an environment that does not exist
    skipped = [check for check in CHECKS.get_all() if check.__name__ == "positive_data_acceptance"]

    for found in api.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=EXAMPLES_PER_OPERATION,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def holds(case: Any) -> None:
            case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, excluded_checks=skipped)

        try:
            holds()
        except Unsatisfiable:  # an operation without parameters cannot be called wrongly
            assert mode is GenerationMode.NEGATIVE


def test_the_document_is_openapi_3_1_and_complete(control: Any) -> None:
    document = httpx.get(f"{control.url}/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    described = set(document["components"]["schemas"])
    assert {"ExperimentSpec", "EnvironmentSpec", "StopRule", "ProblemDocument", "ExperimentView"} <= described
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], f"{method} {path}"
            assert operation["operationId"], f"{method} {path}"
            if path.startswith("/v1"):
                assert {"401", "403", "503"} <= set(operation["responses"])
                assert operation["security"] == [{"HTTPBearer": []}]


def test_every_reference_in_the_document_leads_somewhere(control: Any) -> None:
    document = httpx.get(f"{control.url}/openapi.json").json()

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            for name, entry in value.items():
                if name == "$ref":
                    yield entry
                else:
                    yield from references(entry)
        elif isinstance(value, list):
            for entry in value:
                yield from references(entry)

    for reference in set(references(document)):
        place = document
        for part in reference.removeprefix("#/").split("/"):
            assert part in place, reference
            place = place[part]
