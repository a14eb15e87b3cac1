"""The chart on a Kubernetes cluster, for real: install with an experiment in the values, train, scale by the API, delete pods,
upgrade, autoscale, `helm test`, uninstall. Needs KUBECONFIG, helm and kubectl, and a cluster that runs the images of this machine's
Docker Engine.

The tests share one release and run in this order.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cell_api import Api
from commands import Steps, run, wait_until
from kubernetes_release import CHART, ROOT, Release, tool

pytestmark = pytest.mark.cluster

TAG = "e2e"
IMAGES = {"core": {"tag": TAG}, "torch": {"tag": TAG}}
VALUES: dict[str, Any] = {
    "image": IMAGES,
    "redis": {"persistence": {"enabled": False}},  # so that uninstalling leaves nothing
    "learner": {"persistence": {"enabled": False}},
    "experiment": {
        "name": "values",
        "algorithm": "dqn",
        "environment": {"id": "CartPole-v1"},
        "actors": 8,
        "stop": {"env_steps": 50_000_000},
    },
}
ACTORS = 4
AUTOSCALED = 5


@dataclass(slots=True)
class Experiment:
    """The experiment of the values. Every look checks that no counter has gone back."""

    api: Api
    path: str
    seen: dict[str, int] = field(default_factory=dict)

    def look(self) -> dict[str, Any]:
        """Its view now; that of before while control does not answer."""
        view = self.api.get(self.path)
        if view is None:
            return {"counters": self.seen, "phase": "unknown", "condition": "unknown"}
        assert view["phase"] not in ("failed", "stopped", "succeeded"), view["reason"]
        for name, value in view["counters"].items():
            assert value >= self.seen.get(name, 0), f"{name} went back from {self.seen[name]} to {value}"
            self.seen[name] = value
        return dict(view)

    def counter(self, name: str) -> int:
        return int(self.look()["counters"].get(name, 0))

    def trains_on(self, *, updates: int = 200, env_steps: int = 1_000) -> None:
        """Wait until it has made so many more updates and taken so many more steps than now."""
        before = {name: self.counter(name) for name in ("updates", "env_steps_sampled")}
        wait_until(
            f"{updates} more updates and {env_steps} more steps than {before}",
            lambda: (
                self.counter("updates") >= before["updates"] + updates
                and self.counter("env_steps_sampled") >= before["env_steps_sampled"] + env_steps
            ),
            deadline_s=120,
        )

    def at_work(self) -> set[str]:
        """Actors that live, serve the experiment and have taken steps."""
        members = (self.api.get("/v1/cell") or {"members": []})["members"]
        return {
            member["id"]
            for member in members
            if member["role"] == "actor"
            and member["doing"] == self.path.split("/")[-1]
            and member["detail"].get("env_steps", 0) > 0
        }


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    taken = Steps("cluster")
    yield taken
    taken.print()


@pytest.fixture(scope="module")
def images(steps: Steps) -> None:
    if not os.environ.get("KUBECONFIG"):
        pytest.fail("KUBECONFIG names no cluster")
    with steps.step("images built"):
        for name in ("core", "torch"):
            build = ("docker", "build", "--quiet", "--target", name, "--tag", f"rollstream-{name}:{TAG}", str(ROOT))
            run(*build, timeout_s=1_100, environment={"DOCKER_BUILDKIT": "1"})


@pytest.fixture(scope="module")
def release(images: None, steps: Steps) -> Iterator[Release]:
    """The chart, installed."""
    installed = Release(helm=tool("helm"))
    installed.kubectl("create", "namespace", installed.namespace)
    wait_until("the namespace's own objects", lambda: "serviceaccount/default" in installed.objects(), deadline_s=30)
    try:
        with steps.step("installed and ready"):
            install = ("install", str(CHART), "--values", "-", "--wait", "--timeout", "3m")
            installed.run_helm(*install, stdin=json.dumps(VALUES))
        yield installed
    finally:
        installed.close()
        installed.kubectl("delete", "namespace", installed.namespace, "--timeout", "120s", timeout_s=150)


@pytest.fixture(scope="module")
def experiment(release: Release) -> Experiment:
    api = release.api()
    listed = wait_until(
        "the experiment of the values", lambda: (api.get("/v1/experiments") or {}).get("experiments"), deadline_s=30
    )
    assert len(listed) == 1
    assert listed[0]["id"].startswith("values-")
    return Experiment(api=api, path=f"/v1/experiments/{listed[0]['id']}")


def test_the_experiment_of_the_values_trains(experiment: Experiment, steps: Steps) -> None:
    with steps.step("first updates"):
        wait_until("running", lambda: experiment.look()["phase"] == "running", deadline_s=60)
        experiment.trains_on()


def test_pods_added_by_the_api_contribute_steps(release: Release, experiment: Experiment, steps: Steps) -> None:
    before = release.pods("actor").keys()
    assert len(before) == 2
    with steps.step("scaled from two to four actors"):
        answer = experiment.api.ask("PUT", "/v1/cell/actors", {"replicas": ACTORS})
        assert answer.status == 202, answer.body
        wait_until("four ready actor pods", lambda: len(release.pods("actor")) == ACTORS, deadline_s=90)
        wait_until("all four take steps", lambda: experiment.at_work() == release.pods("actor").keys(), deadline_s=90)
    assert before < release.pods("actor").keys()


def test_training_goes_on_when_an_actor_pod_is_deleted(release: Release, experiment: Experiment, steps: Steps) -> None:
    victim = sorted(release.pods("actor"))[0]
    with steps.step("actor pod deleted and replaced"):
        release.kubectl("delete", "pod", victim, "--wait=false")
        experiment.trains_on()
        wait_until(
            "a new actor takes steps",
            lambda: len(at_work := experiment.at_work()) == ACTORS and victim not in at_work,
            deadline_s=90,
        )


def test_training_goes_on_when_the_replay_pod_is_deleted(release: Release, experiment: Experiment, steps: Steps) -> None:
    ((victim, old),) = release.pods("replay").items()
    with steps.step("replay pod deleted and back"):
        release.kubectl("delete", "pod", victim, "--grace-period=1", "--wait=false")
        wait_until("a new replay pod is ready", lambda: release.pods("replay").get(victim, old) != old, deadline_s=90)
        experiment.trains_on()
    wait_until("all is well", lambda: experiment.look()["condition"] == "OK", deadline_s=30)


def test_control_may_scale_and_look_and_nothing_else(release: Release) -> None:
    deployment = f"deployments.apps/{release.name}-actor"
    run_as = "control"
    allowed = (("get", "pods"), ("list", "pods"))
    refused = (("delete", "pods"), ("get", "secrets"), ("list", "configmaps"), ("patch", deployment), ("create", "pods"))
    assert all(release.may(run_as, verb, resource) for verb, resource in allowed)
    assert not [entry for entry in refused if release.may(run_as, *entry)]
    assert not [entry for entry in (*allowed, *refused) if release.may("worker", *entry)]


def test_an_upgrade_keeps_the_number_of_actors_and_the_tokens(release: Release, experiment: Experiment, steps: Steps) -> None:
    with steps.step("upgraded"):
        release.run_helm("upgrade", str(CHART), "--reuse-values", "--wait", "--timeout", "3m")
    assert release.get(f"deployment/{release.name}-actor")["spec"]["replicas"] == ACTORS
    assert experiment.api.ask("GET", "/v1/cell").status == 200


def test_the_cell_passes_its_own_test(release: Release, steps: Steps) -> None:
    with steps.step("helm test"):
        assert "Succeeded" in release.run_helm("test")


def test_an_autoscaler_scales_the_actors_and_control_lets_it(release: Release, experiment: Experiment, steps: Steps) -> None:
    bounds = {"mode": "hpa", "minReplicas": AUTOSCALED, "maxReplicas": AUTOSCALED}
    with steps.step("autoscaled to five actors"):
        upgrade = ("upgrade", str(CHART), "--reuse-values", "--values", "-", "--wait", "--timeout", "3m")
        release.run_helm(*upgrade, stdin=json.dumps({"actor": {"autoscaling": bounds}}))
        wait_until("five actors", lambda: len(release.pods("actor")) == AUTOSCALED, deadline_s=120)
    answer = experiment.api.ask("PUT", "/v1/cell/actors", {"replicas": 2})
    assert answer.status == 409
    assert "is scaled by HorizontalPodAutoscaler" in answer.body["detail"]
    experiment.trains_on()


def leftovers(release: Release) -> set[str]:
    """What is there beside what every namespace has (before Kubernetes 1.24 also a token of its default account)."""
    own = {"serviceaccount/default", "configmap/kube-root-ca.crt"}
    return {name for name in release.objects() - own if not name.startswith("secret/default-token-")}


def test_uninstalling_leaves_nothing(release: Release, experiment: Experiment, steps: Steps) -> None:
    print(f"cluster: counters at the end: {experiment.look()['counters']}")
    release.close()
    with steps.step("uninstalled"):
        release.run_helm("uninstall", "--wait", "--timeout", "2m")
        wait_until("nothing is left", lambda: not leftovers(release), deadline_s=120)
