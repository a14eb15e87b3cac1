"""The chart is valid: for helm, for each release of Kubernetes, and against the typed values."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))

from rendering import CHART, KUBERNETES, VALUES, Helm, objects

from rollstream_control.chart import ChartValues
from rollstream_control.chart.files import GENERATED

OF_OPERATORS = {"ServiceMonitor", "PodMonitor"}
"""Kinds that Kubernetes itself does not know."""
API_OF_1_20 = {
    "v1", "apps/v1", "autoscaling/v2beta2", "networking.k8s.io/v1", "policy/v1beta1", "rbac.authorization.k8s.io/v1",
    "monitoring.coreos.com/v1",
}  # fmt: skip

values_files = pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)


@values_files
def test_helm_finds_nothing_to_complain_about(helm: Helm, values: Path) -> None:
    done = helm.lint("-f", str(values))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 chart(s) failed" in done.stdout


@values_files
@pytest.mark.parametrize("kubernetes", KUBERNETES[1:])
def test_manifests_fit_the_schemas_of_kubernetes(helm: Helm, values: Path, kubernetes: str) -> None:
    manifests = helm.render("-f", str(values), kubernetes=kubernetes)
    assert len(manifests) >= 15
    for manifest in manifests:
        if manifest["kind"] not in OF_OPERATORS:
            kubernetes_validate.validate(manifest, kubernetes, strict=True)


@values_files
def test_a_cluster_of_1_20_gets_what_it_knows(helm: Helm, values: Path) -> None:
    assert {manifest["apiVersion"] for manifest in helm.render("-f", str(values), kubernetes="1.20")} <= API_OF_1_20


def test_newer_fields_go_to_newer_clusters_only(helm: Helm) -> None:
    everything = ("-f", str(CHART / "ci" / "everything.yaml"))
    old = objects(helm.render(*everything, kubernetes="1.20"), "StatefulSet")["cell-redis"]["spec"]
    new = objects(helm.render(*everything, kubernetes="1.33"), "StatefulSet")["cell-redis"]["spec"]
    assert "persistentVolumeClaimRetentionPolicy" not in old
    assert new["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Delete", "whenScaled": "Retain"}


@pytest.mark.parametrize(
    ("option", "named"),
    [
        ("actor.replcas=3", "replcas"),
        ("actor.replicas=many", "replicas"),
        ("actor.autoscaling.mode=keda", "mode"),
        ("redis.maxmemory=1 gigabyte", "maxmemory"),
        ("experiment.algoritm=ppo", "algoritm"),
        ("experiment.name=x", "algorithm"),
        ("image.core.digest=latest", "digest"),
        ("auth.operatorToken=short", "operatorToken"),
        ("learner.resources.requests.cpu=one", "cpu"),
        ("rediss.enabled=false", "rediss"),
    ],
)
def test_a_wrong_value_is_refused_by_name(helm: Helm, option: str, named: str) -> None:
    done = helm.lint("--set-string" if "=short" in option else "--set", option)
    assert done.returncode != 0
    assert named in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("redis.enabled=false",), "redis.externalUrl is required when redis.enabled is false"),
        (("actor.autoscaling.mode=hpa", "actor.autoscaling.minReplicas=20"), "minReplicas (20) must be <="),
        (("actor.autoscaling.mode=hpa", "actor.resources.requests=null"), "needs actor.resources.requests.cpu"),
    ],
)
def test_a_contradiction_is_refused_with_the_reason(helm: Helm, options: tuple[str, ...], message: str) -> None:
    done = helm.run("template", "cell", str(CHART), *(part for option in options for part in ("--set", option)))
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("name", GENERATED)
def test_generated_files_are_up_to_date(name: str) -> None:
    assert (CHART / name).read_text(encoding="utf-8") == GENERATED[name](), "run `make schema`"


def test_defaults_in_the_file_and_in_the_models_are_the_same() -> None:
    written = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    typed: dict[str, Any] = ChartValues().model_dump(mode="json", by_alias=True)
    assert typed.pop("experiment") is None
    assert written.pop("experiment") == {}
    assert written == typed


@values_files
def test_values_of_the_examples_fit_the_models(values: Path) -> None:
    ChartValues.model_validate(yaml.safe_load(values.read_text(encoding="utf-8")))
