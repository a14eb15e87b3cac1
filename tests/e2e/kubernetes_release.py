"""One release of the chart on a real cluster, as an end-to-end test drives it.

Commands run behind ROLLSTREAM_CLUSTER_PREFIX (such as `nsenter --net=/run/netns/x --`) when the cluster can only be reached so.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cell_api import Api
from commands import run

__all__ = ["CHART", "KINDS", "Release", "prefix", "tool"]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "rollstream"
KINDS = (
    "pods,services,endpoints,endpointslices,configmaps,secrets,serviceaccounts,persistentvolumeclaims,deployments,replicasets,"
    "statefulsets,controllerrevisions,jobs,roles,rolebindings,networkpolicies,poddisruptionbudgets,horizontalpodautoscalers"
)
"""Everything that a release could leave behind in its namespace."""


def prefix() -> tuple[str, ...]:
    return tuple(shlex.split(os.environ.get("ROLLSTREAM_CLUSTER_PREFIX", "")))


def tool(name: str, *, folder: str = "") -> str:
    """Path of a program: on the PATH, or in the project's folder for tools."""
    candidates = [ROOT / ".tools" / folder / name] if folder else [shutil.which(name), ROOT / ".tools" / "helm3" / name]
    found = next((str(path) for path in candidates if path is not None and os.access(path, os.X_OK)), None)
    if found is None:
        pytest.fail(f"{name} is neither on the PATH nor in .tools")
    return found


@dataclass(slots=True)
class Release:
    """A release called `name` in a namespace of its own."""

    helm: str
    name: str = "cell"
    namespace: str = field(default_factory=lambda: f"rollstream-e2e-{secrets.token_hex(3)}")
    forward: subprocess.Popen[str] | None = None

    def command(self, *arguments: str, timeout_s: float = 60.0, stdin: str | None = None) -> str:
        return run(*prefix(), *arguments, timeout_s=timeout_s, stdin=stdin)

    def kubectl(self, *arguments: str, timeout_s: float = 60.0, stdin: str | None = None) -> str:
        return self.command(tool("kubectl"), "--namespace", self.namespace, *arguments, timeout_s=timeout_s, stdin=stdin)

    def get(self, what: str, *options: str) -> Any:
        return json.loads(self.kubectl("get", what, "--output", "json", *options))

    def run_helm(self, verb: str, *arguments: str, timeout_s: float = 240.0, stdin: str | None = None) -> str:
        return self.command(
            self.helm, verb, self.name, *arguments, "--namespace", self.namespace, timeout_s=timeout_s, stdin=stdin
        )

    def may(self, account: str, verb: str, resource: str) -> bool:
        """Whether the service account of that name may do that here."""
        user = f"system:serviceaccount:{self.namespace}:{self.name}-{account}"
        done = subprocess.run(
            [*prefix(), tool("kubectl"), "--namespace", self.namespace, "auth", "can-i", verb, resource, "--as", user],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        return done.stdout.strip() == "yes"

    def secret(self, name: str, key: str) -> str:
        return base64.b64decode(self.get(f"secret/{name}")["data"][key]).decode()

    def pods(self, component: str) -> dict[str, str]:
        """Uid of each pod of the component that is ready and stays, by name."""
        found = self.get("pods", "--selector", f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}")
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in found["items"]
            if "deletionTimestamp" not in pod["metadata"]
            and any(entry["type"] == "Ready" and entry["status"] == "True" for entry in pod["status"].get("conditions", []))
        }

    def objects(self) -> set[str]:
        """Everything in the namespace."""
        return set(self.kubectl("get", KINDS, "--output", "name", "--ignore-not-found").split())

    def api(self) -> Api:
        """Control's API through a forwarded port, with the operator's token."""
        self.close()
        command = [
            *prefix(),
            tool("kubectl"),
            "--namespace",
            self.namespace,
            "port-forward",
            f"service/{self.name}-control",
            ":80",
        ]
        self.forward = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.forward.stdout is not None
        told = self.forward.stdout.readline()  # Forwarding from 127.0.0.1:40001 -> 8080
        if "127.0.0.1:" not in told:
            pytest.fail(f"kubectl port-forward said {told!r}")
        port = int(told.split("127.0.0.1:")[1].split()[0])
        token = self.secret(f"{self.name}-auth", "operator-token")
        return Api(url=f"http://127.0.0.1:{port}", token=token, prefix=prefix())

    def close(self) -> None:
        """End the forwarded port."""
        if self.forward is not None:
            self.forward.terminate()
            self.forward.wait(timeout=10)
            self.forward = None
