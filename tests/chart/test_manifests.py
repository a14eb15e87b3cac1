"""What the chart makes: least privilege, probes, an experiment, autoscaling, monitoring."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))

from rendering import CHART, VALUES, Helm, objects, pods

from rollstream.config import ExperimentSpec
from rollstream.metrics.names import METRICS
from rollstream_control.chart import dashboard
from rollstream_control.submission.document import parse_yaml

EVERYTHING = ("-f", str(CHART / "ci" / "everything.yaml"))
SECRETS = re.compile(r"(PASSWORD|TOKEN)$")


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_every_pod_has_least_privilege(helm: Helm, values: Path) -> None:
    found = dict(pods(helm.render("-f", str(values))))
    assert len(found) >= 5
    for name, pod in found.items():
        security = pod["securityContext"]
        assert security["runAsNonRoot"], name
        assert security["runAsUser"] > 0, name
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["enableServiceLinks"] is False, name
        assert pod["automountServiceAccountToken"] is (name == "Deployment/cell-control"), name
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["limits"]["memory"], name


def test_no_secret_stands_in_a_pod(helm: Helm) -> None:
    for name, pod in pods(helm.render(*EVERYTHING)):
        for container in pod["containers"]:
            for variable in container["env"]:
                if SECRETS.search(variable["name"]):
                    assert "secretKeyRef" in variable["valueFrom"], f"{name} {variable['name']}"


def test_every_service_is_probed(helm: Helm) -> None:
    for name, pod in pods(helm.render()):
        if not name.startswith("Pod/"):
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= pod["containers"][0].keys(), name


def test_ports_name_their_protocol(helm: Helm) -> None:
    """Server-side apply of Kubernetes before 1.21 refuses ports without."""
    manifests = helm.render(*EVERYTHING)
    ports = [port for service in objects(manifests, "Service").values() for port in service["spec"]["ports"]]
    ports += [port for _, pod in pods(manifests) for container in pod["containers"] for port in container.get("ports", [])]
    assert len(ports) >= 9
    assert all(port["protocol"] == "TCP" for port in ports)


def rules(helm: Helm, *options: str) -> list[tuple[Any, ...]]:
    role = objects(helm.render(*options), "Role")["cell-control"]
    return [(*rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in role["rules"]]


def test_control_may_scale_the_actors_and_see_pods(helm: Helm) -> None:
    assert rules(helm) == [("deployments/scale", ["cell-actor"], ["get", "patch"]), ("pods", None, ["get", "list"])]


def test_beside_an_autoscaler_control_may_only_look(helm: Helm) -> None:
    assert rules(helm, *EVERYTHING) == [
        ("deployments/scale", ["cell-actor"], ["get"]),
        ("pods", None, ["get", "list"]),
        ("horizontalpodautoscalers", None, ["list"]),
    ]


def test_control_may_always_reach_the_cluster_and_nobody_else(helm: Helm) -> None:
    subjects = objects(helm.render(), "RoleBinding")["cell-control"]["subjects"]
    assert [subject["name"] for subject in subjects] == ["cell-control"]
    accounts = {name: pod["serviceAccountName"] for name, pod in pods(helm.render())}
    assert {name for name, account in accounts.items() if account == "cell-control"} == {"Deployment/cell-control"}


@pytest.mark.parametrize(("mode", "replicas", "autoscalers"), [("control", 3, 0), ("hpa", None, 1)])
def test_actors_are_scaled_by_control_or_by_an_autoscaler(helm: Helm, mode: str, replicas: int | None, autoscalers: int) -> None:
    manifests = helm.render("--set", f"actor.autoscaling.mode={mode},actor.replicas=3")
    assert objects(manifests, "Deployment")["cell-actor"]["spec"].get("replicas") == replicas
    assert len(objects(manifests, "HorizontalPodAutoscaler")) == autoscalers


def test_an_autoscaler_aims_at_cpu_use_within_its_bounds(helm: Helm) -> None:
    spec = objects(helm.render(*EVERYTHING), "HorizontalPodAutoscaler")["cell-actor"]["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    assert spec["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cell-actor"}
    assert spec["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_an_experiment_in_values_reaches_control_as_it_was_written(helm: Helm, tmp_path: Path) -> None:
    document = {
        "name": "numbers",
        "algorithm": "ppo",
        "environment": {"id": "CartPole-v1", "kwargs": {"text": "a: b # c <&>"}},
        "settings": {"learning_rate": 1e-7, "hidden": [64, 64]},
        "stop": {"env_steps": 5_000_000},
    }
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump({"experiment": document}), encoding="utf-8")
    manifests = helm.render("-f", str(values))
    text = objects(manifests, "ConfigMap")["cell-experiment"]["data"]["experiment.yaml"]
    assert parse_yaml(text, what="spec") == document
    ExperimentSpec.model_validate(document)
    control = dict(pods(manifests))["Deployment/cell-control"]
    assert {"name": "ROLLSTREAM_EXPERIMENT_FILE", "value": "/experiment/experiment.yaml"} in control["containers"][0]["env"]


def test_without_an_experiment_control_is_told_of_none(helm: Helm) -> None:
    manifests = helm.render()
    assert objects(manifests, "ConfigMap") == {}
    control = dict(pods(manifests))["Deployment/cell-control"]
    assert "ROLLSTREAM_EXPERIMENT_FILE" not in {variable["name"] for variable in control["containers"][0]["env"]}


def test_a_changed_experiment_restarts_control(helm: Helm) -> None:
    def checksum(steps: int) -> str:
        options = f"experiment.algorithm=ppo,experiment.environment.id=CartPole-v1,experiment.stop.env_steps={steps}"
        template = objects(helm.render("--set", options), "Deployment")["cell-control"]["spec"]["template"]
        return str(template["metadata"]["annotations"]["checksum/experiment"])

    assert checksum(1_000) == checksum(1_000) != checksum(2_000)


def test_only_the_cell_reaches_redis_and_replay(helm: Helm) -> None:
    policies = objects(helm.render(), "NetworkPolicy")

    def callers(name: str) -> list[str]:
        rule = policies[name]["spec"]["ingress"][0]["from"][0]["podSelector"]
        assert rule["matchLabels"]["app.kubernetes.io/instance"] == "cell"
        return list(rule["matchExpressions"][0]["values"])

    assert callers("cell-redis") == ["actor", "control", "learner", "replay"]
    assert callers("cell-replay") == ["control", "learner"]
    (among_actors,) = policies["cell-actor"]["spec"]["ingress"]
    assert among_actors["from"][0]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "actor"
    assert "ingress" not in policies["cell-learner"]["spec"], "nobody calls a learner"
    assert policies["cell-control"]["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": 8080}]}]


def test_an_external_redis_gets_its_url_password_and_authority(helm: Helm) -> None:
    manifests = helm.render("-f", str(CHART / "ci" / "external-redis.yaml"))
    assert "cell-redis" not in objects(manifests, "StatefulSet")
    assert objects(manifests, "Secret") == {}
    actor = dict(pods(manifests))["Deployment/cell-actor"]["containers"][0]
    environment = {variable["name"]: variable for variable in actor["env"]}
    assert environment["ROLLSTREAM_REDIS_URL"]["value"] == "rediss://cache.example:6380/0"
    assert environment["ROLLSTREAM_REDIS_PASSWORD"]["valueFrom"]["secretKeyRef"] == {"name": "my-redis", "key": "password"}
    assert environment["ROLLSTREAM_REDIS_CA_FILE"]["value"] == "/redis-ca/ca.crt"
    assert actor["image"] == "registry.example/rl/rollstream-torch:0.1.0"


def test_monitors_cover_every_pod_of_ours_once(helm: Helm) -> None:
    manifests = helm.render(*EVERYTHING)
    monitor = objects(manifests, "ServiceMonitor")["cell"]
    roles = monitor["spec"]["selector"]["matchExpressions"][0]["values"]
    assert roles == ["control", "learner", "replay"]
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert {f"cell-{role}" for role in roles} <= objects(manifests, "Service").keys()
    selected = objects(manifests, "PodMonitor")["cell-actor"]["spec"]["selector"]["matchLabels"]
    assert selected["app.kubernetes.io/component"] == "actor"


def test_the_dashboard_is_shipped_as_it_is_generated(helm: Helm) -> None:
    shipped = objects(helm.render(*EVERYTHING), "ConfigMap")["cell-dashboard"]
    assert shipped["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(shipped["data"]["rollstream.json"]) == dashboard()


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    known = {metric.name for metric in METRICS}
    asked = set(re.findall(r"rollstream_[a-z_]+", json.dumps(dashboard())))
    assert len(asked) >= 15
    assert {name.removesuffix("_total") for name in asked} <= known


def test_a_long_name_of_a_release_still_makes_valid_names(helm: Helm) -> None:
    for manifest in helm.render(*EVERYTHING, release="a-release-with-a-name-of-fifty-three-characters-xxxxx"):
        assert len(manifest["metadata"]["name"]) <= 63
