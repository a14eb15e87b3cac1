"""Tests of the chart run with the real helm, once for each release of it that this machine has."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from rendering import Helm, helm_binaries, release


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Tests that take `binary` run with every helm that there is."""
    if "binary" in metafunc.fixturenames:
        found = helm_binaries()
        metafunc.parametrize(
            "binary", found or (None,), ids=[release(str(path)) for path in found] or ["no-helm"], scope="session"
        )


@pytest.fixture(scope="session")
def helm(binary: Path | None) -> Helm:
    if binary is None:
        if os.environ.get("ROLLSTREAM_REQUIRE_HELM"):
            pytest.fail("helm is neither on the PATH nor in .tools/helm3 or .tools/helm4, and ROLLSTREAM_REQUIRE_HELM is set")
        pytest.skip("helm is neither on the PATH nor in .tools/helm3 or .tools/helm4")
    return Helm(binary=binary)
