"""Scales the actor Deployment through the `scale` subresource: the only thing that control may change in a cluster.

Import this module only with ROLLSTREAM_BACKEND=kubernetes: the official client is slow and big.

Rights it needs in its namespace: `get` and `patch` on `deployments/scale`; with `list` on `horizontalpodautoscalers` it can also
tell that an autoscaler would undo the change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import urllib3
from kubernetes import client, config

from rollstream.errors import ConfigError
from rollstream_control.failure import Failure

__all__ = ["KubernetesScaling", "connect"]

TIMEOUT_S = (3.0, 10.0)
"""To connect, and to answer: longer than an API server takes, shorter than the patience of a person."""


def connect(*, kubeconfig: Path | None = None) -> client.ApiClient:
    """A client with the pod's service account, or, outside of a cluster, with the kubeconfig (KUBECONFIG or ~/.kube/config)."""
    configuration = client.Configuration()
    try:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except config.ConfigException:
        try:
            config.load_kube_config(  # type: ignore[no-untyped-call]
                config_file=None if kubeconfig is None else str(kubeconfig), client_configuration=configuration
            )
        except (config.ConfigException, OSError) as error:
            raise ConfigError(
                "ROLLSTREAM_BACKEND=kubernetes, but this is no pod with a service account and there is no usable "
                f"kubeconfig: {error}"
            ) from error
    configuration.retries = 2
    return client.ApiClient(configuration)


class KubernetesScaling:
    """Reads and patches `deployments/scale` of one Deployment. Thread-safe, as the client's connection pool is."""

    name = "kubernetes"

    def __init__(self, api: client.ApiClient, *, namespace: str, deployment: str) -> None:
        self._apps = client.AppsV1Api(api)
        self._autoscaling = client.AutoscalingV1Api(api)
        self._namespace = namespace
        self._deployment = deployment

    def wanted(self) -> int | None:
        """`spec.replicas` of the Deployment."""
        scale = self._call(
            "get",
            lambda: self._apps.read_namespaced_deployment_scale(self._deployment, self._namespace, _request_timeout=TIMEOUT_S),
        )
        return int(scale.spec.replicas or 0)

    def scale(self, replicas: int) -> None:
        """Patch `spec.replicas`; refused when an autoscaler owns the Deployment."""
        owner = self._autoscaler()
        if owner is not None:
            raise Failure(
                f"Deployment {self._deployment} is scaled by HorizontalPodAutoscaler {owner}, which would undo this: "
                "change its minReplicas and maxReplicas, or turn it off (chart value actor.autoscaling.mode=control)",
                status=409,
                kind="autoscaled",
            )
        self._call(
            "patch",
            lambda: self._apps.patch_namespaced_deployment_scale(
                self._deployment, self._namespace, {"spec": {"replicas": replicas}}, _request_timeout=TIMEOUT_S
            ),
        )

    def _autoscaler(self) -> str | None:
        """Name of the HPA whose target is the Deployment; None when there is none or we may not look."""
        try:
            found = self._autoscaling.list_namespaced_horizontal_pod_autoscaler(self._namespace, _request_timeout=TIMEOUT_S)
        except client.ApiException as error:
            if error.status in (403, 404):
                return None
            raise self._failure("list", "horizontalpodautoscalers", error) from error
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from error
        for autoscaler in found.items:
            target = autoscaler.spec.scale_target_ref
            if target.kind == "Deployment" and target.name == self._deployment:
                return str(autoscaler.metadata.name if autoscaler.metadata else "?")
        return None

    def _call(self, verb: str, request: Callable[[], Any]) -> Any:
        try:
            return request()
        except client.ApiException as error:
            raise self._failure(verb, "deployments/scale", error) from error
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from error

    def _failure(self, verb: str, resource: str, error: client.ApiException) -> Failure:
        if error.status in (401, 403):
            return Failure(
                f"the cluster does not let control {verb} {resource} of {self._deployment} in namespace {self._namespace}: "
                f"grant its service account the verb {verb!r} on {resource!r} (API group apps). The cluster says: {_said(error)}",
                status=502,
                kind="cluster-refused",
            )
        if error.status == 404:
            return Failure(
                f"there is no Deployment {self._deployment} in namespace {self._namespace}: check "
                "ROLLSTREAM_ACTOR_DEPLOYMENT and ROLLSTREAM_NAMESPACE",
                status=502,
                kind="no-deployment",
            )
        return Failure(
            f"the cluster could not {verb} {resource} of {self._deployment} (HTTP {error.status}): {_said(error)}",
            status=502,
            kind="cluster-error",
        )

    def _unreachable(self, error: Exception) -> Failure:
        return Failure(
            f"the Kubernetes API cannot be reached ({type(error).__name__}): control needs it to scale {self._deployment}; "
            "check its network policy and try again",
            status=503,
            kind="cluster-unreachable",
            headers={"Retry-After": "5"},
        )


def _said(error: client.ApiException) -> str:
    """The `message` of the Status object in the reply, or the reason."""
    try:
        return str(json.loads(error.body or "")["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason)
