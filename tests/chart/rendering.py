"""Rendering the chart with the real helm, and finding things in the manifests."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["CHART", "KUBERNETES", "VALUES", "Helm", "helm_binaries", "objects", "pods", "release"]

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "rollstream"
VALUES = tuple(sorted((CHART / "ci").glob("*.yaml")))
KUBERNETES = ("1.20", "1.25", "1.33", "1.37")
FIRST_WITH = {"autoscaling/v2": (1, 23), "policy/v1": (1, 21)}
"""Release of Kubernetes from which a cluster has these API versions."""


def helm_binaries() -> tuple[Path, ...]:
    """One of each release: from the PATH, and from the project's folder for tools."""
    found = [shutil.which("helm"), *(ROOT / ".tools" / name / "helm" for name in ("helm3", "helm4"))]
    binaries = {release(str(path)): Path(path) for path in reversed(found) if path is not None and os.access(path, os.X_OK)}
    return tuple(binaries[name] for name in sorted(binaries))


@cache
def release(path: str) -> str:
    return subprocess.run([path, "version", "--short"], capture_output=True, text=True, check=True, timeout=30).stdout.split("+")[
        0
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Helm:
    """One helm binary and our chart."""

    binary: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(self.binary), *arguments], capture_output=True, text=True, check=False, timeout=60)

    def lint(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.run("lint", "--strict", str(CHART), *options)

    def render(self, *options: str, kubernetes: str = "1.33", release: str = "cell") -> list[dict[str, Any]]:
        """The manifests as a cluster of that release would get them."""
        versions = tuple(int(part) for part in kubernetes.split("."))
        known = [option for name, first in FIRST_WITH.items() if versions >= first for option in ("--api-versions", name)]
        done = self.run("template", release, str(CHART), "--kube-version", f"{kubernetes}.0", *known, *options)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]


def objects(manifests: Sequence[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    """Those of one kind, by name."""
    return {manifest["metadata"]["name"]: manifest for manifest in manifests if manifest["kind"] == kind}


def pods(manifests: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and spec of every pod that the manifests make."""
    for manifest in manifests:
        name = f"{manifest['kind']}/{manifest['metadata']['name']}"
        if manifest["kind"] == "Pod":
            yield name, manifest["spec"]
        elif "template" in manifest.get("spec", {}):
            yield name, manifest["spec"]["template"]["spec"]
