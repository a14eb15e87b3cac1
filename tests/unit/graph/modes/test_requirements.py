"""Modes say what they need installed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from rollstream.errors import ConfigError
from rollstream.graph import DoubleQLoss, QPolicy, build, build_acting, build_update
from rollstream.spaces import Leaf


def test_torch_modes_say_what_to_install(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    policy = QPolicy((box(4),), (discrete(2),))
    missing = r"mode '{}' needs PyTorch, which is not installed; install rollstream\[torch\]"
    with pytest.raises(ConfigError, match=missing.format("torch")):
        build_acting(policy, batch=1, mode="torch")
    for mode in ("torch", "torch-graph"):
        with pytest.raises(ConfigError, match=missing.format(mode)):
            build_update(DoubleQLoss(policy), batch_rows=1, seed=0, mode=mode)  # type: ignore[arg-type]


def test_mode_onnx_says_what_to_install(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    missing = r"mode 'onnx' needs onnx and onnxruntime, which are not installed; install rollstream\[onnx\]"
    with pytest.raises(ConfigError, match=missing):
        build_acting(QPolicy((box(4),), (discrete(2),)), batch=1, mode="onnx")


def test_mode_jax_says_what_to_install(
    box: Callable[..., Leaf], discrete: Callable[..., Leaf], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    policy = QPolicy((box(4),), (discrete(2),))
    missing = r"mode 'jax' needs JAX, which is not installed; install rollstream\[jax\]"
    with pytest.raises(ConfigError, match=missing):
        build(policy, mode="jax")
    with pytest.raises(ConfigError, match=missing):
        build_update(DoubleQLoss(policy), batch_rows=1, seed=0, mode="jax")
    monkeypatch.delitem(sys.modules, "rollstream.graph.backends.jax", raising=False)
    with pytest.raises(ConfigError, match=missing):
        from rollstream.graph.backends.jax import FlaxModule  # noqa: F401
