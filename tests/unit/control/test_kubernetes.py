"""The Kubernetes backend against a small real server that speaks the `scale` subresource; the true cluster is in tests/e2e."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from rollstream.errors import ConfigError
from rollstream_control.cluster.kubernetes import KubernetesScaling, connect
from rollstream_control.failure import Failure

SCALE = "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"
AUTOSCALERS = "/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers"


class FakeCluster:
    """One Deployment `cell-actor` in namespace `rl`. `deny` holds verbs that are forbidden."""

    def __init__(self) -> None:
        self.replicas = 2
        self.autoscaled: str | None = None
        self.deny: set[str] = set()
        self.broken = False
        self.patches: list[tuple[str, Any]] = []
        self.app = FastAPI()
        self.app.get(SCALE)(self._get)
        self.app.patch(SCALE)(self._patch)
        self.app.get(AUTOSCALERS)(self._list)

    async def _get(self, namespace: str, name: str) -> JSONResponse:
        return self._problem("get", namespace, name) or self._scale()

    async def _patch(self, namespace: str, name: str, request: Request) -> JSONResponse:
        problem = self._problem("patch", namespace, name)
        if problem is None:
            body = json.loads(await request.body())
            self.patches.append((request.headers["content-type"], body))
            self.replicas = body["spec"]["replicas"]
        return problem or self._scale()

    async def _list(self, namespace: str) -> JSONResponse:
        if "list" in self.deny:
            return _status(403, "forbidden to list")
        target = {"kind": "Deployment", "name": self.autoscaled, "apiVersion": "apps/v1"}
        item = {"metadata": {"name": "cell-actor-hpa"}, "spec": {"scaleTargetRef": target, "maxReplicas": 9}}
        return JSONResponse({"kind": "HorizontalPodAutoscalerList", "items": [item] if self.autoscaled else []})

    def _problem(self, verb: str, namespace: str, name: str) -> JSONResponse | None:
        if self.broken:
            return _status(500, "etcd is unwell")
        if verb in self.deny:
            return _status(403, f'deployments.apps "{name}" is forbidden: User "control" cannot {verb} resource')
        return None if (namespace, name) == ("rl", "cell-actor") else _status(404, "not found")

    def _scale(self) -> JSONResponse:
        return JSONResponse({"kind": "Scale", "metadata": {"name": "cell-actor"}, "spec": {"replicas": self.replicas}})


def _status(code: int, message: str) -> JSONResponse:
    return JSONResponse({"kind": "Status", "status": "Failure", "message": message, "code": code}, status_code=code)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def kubeconfig(cluster: FakeCluster, tmp_path: Path) -> Iterator[Path]:
    bound = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(cluster.app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[bound])))
    thread.start()
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(_kubeconfig(f"http://127.0.0.1:{bound.getsockname()[1]}")))
    yield path
    server.should_exit = True
    thread.join()


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": url}}],
        "users": [{"name": "test", "user": {"token": "secret-of-the-cluster"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }


@pytest.fixture
def scaling(kubeconfig: Path) -> KubernetesScaling:
    return KubernetesScaling(connect(kubeconfig=kubeconfig), namespace="rl", deployment="cell-actor")


def failure_of(scaling: KubernetesScaling, replicas: int = 3) -> Failure:
    with pytest.raises(Failure) as caught:
        scaling.scale(replicas)
    return caught.value


def test_scaling_patches_the_number_of_replicas_and_nothing_else(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    scaling.scale(5)
    assert [body for _, body in cluster.patches] == [{"spec": {"replicas": 5}}]
    assert "merge-patch+json" in cluster.patches[0][0]
    assert scaling.wanted() == 5


def test_scaling_to_nothing_and_back_works(scaling: KubernetesScaling) -> None:
    scaling.scale(0)
    assert scaling.wanted() == 0
    scaling.scale(1)
    assert scaling.wanted() == 1


def test_a_forbidden_patch_names_the_verb_and_the_resource_to_grant(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.deny = {"patch"}
    failure = failure_of(scaling)
    assert failure.status == 502
    assert "does not let control patch deployments/scale of cell-actor in namespace rl" in str(failure)
    assert "grant its service account the verb 'patch' on 'deployments/scale'" in str(failure)
    assert 'User "control" cannot patch' in str(failure)


def test_a_forbidden_read_names_its_verb(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.deny = {"get"}
    with pytest.raises(Failure, match="the verb 'get' on 'deployments/scale'"):
        scaling.wanted()


def test_a_deployment_that_is_not_there_is_named_with_its_settings(kubeconfig: Path) -> None:
    scaling = KubernetesScaling(connect(kubeconfig=kubeconfig), namespace="rl", deployment="cell-actro")
    failure = failure_of(scaling)
    assert failure.kind == "no-deployment"
    assert "there is no Deployment cell-actro in namespace rl: check ROLLSTREAM_ACTOR_DEPLOYMENT" in str(failure)


def test_a_deployment_that_an_autoscaler_owns_is_left_alone(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.autoscaled = "cell-actor"
    failure = failure_of(scaling)
    assert (failure.status, failure.kind) == (409, "autoscaled")
    assert "HorizontalPodAutoscaler cell-actor-hpa, which would undo this" in str(failure)
    assert cluster.patches == []


def test_an_autoscaler_of_another_deployment_does_not_matter(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.autoscaled = "something-else"
    scaling.scale(4)
    assert cluster.replicas == 4


def test_without_the_right_to_see_autoscalers_scaling_still_works(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.deny = {"list"}
    scaling.scale(4)
    assert cluster.replicas == 4


def test_an_unwell_cluster_is_quoted(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.broken = True
    failure = failure_of(scaling)
    assert failure.kind == "cluster-error"
    assert "HTTP 500): etcd is unwell" in str(failure)


def test_an_unreachable_cluster_is_a_clear_failure(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(_kubeconfig(f"http://127.0.0.1:{port}")))
    scaling = KubernetesScaling(connect(kubeconfig=path), namespace="rl", deployment="cell-actor")
    failure = failure_of(scaling)
    assert (failure.status, failure.kind) == (503, "cluster-unreachable")
    assert "the Kubernetes API cannot be reached" in str(failure)


def test_no_message_shows_the_token_of_the_cluster(scaling: KubernetesScaling, cluster: FakeCluster) -> None:
    cluster.deny = {"get", "patch"}
    assert "secret-of-the-cluster" not in str(failure_of(scaling))


def test_without_pod_and_kubeconfig_the_start_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="this is no pod with a service account and there is no usable kubeconfig"):
        connect(kubeconfig=tmp_path / "missing")
