"""What a mode needs installed."""

from __future__ import annotations

import importlib.util

from rollstream.errors import ConfigError

__all__ = ["has_onnx", "require_jax", "require_onnx", "require_torch"]


def require_jax(mode: str) -> None:
    """Raise `ConfigError` that says what to install when `mode` needs JAX and there is none."""
    if importlib.util.find_spec("jax") is None:
        raise ConfigError(f"mode {mode!r} needs JAX, which is not installed; install rollstream[jax]")


def require_torch(mode: str) -> None:
    """Raise `ConfigError` that says what to install when `mode` needs PyTorch and there is none."""
    if importlib.util.find_spec("torch") is None:
        raise ConfigError(f"mode {mode!r} needs PyTorch, which is not installed; install rollstream[torch]")


def require_onnx(mode: str) -> None:
    """Raise `ConfigError` that says what to install when `mode` needs ONNX Runtime and there is none."""
    if not has_onnx():
        raise ConfigError(f"mode {mode!r} needs onnx and onnxruntime, which are not installed; install rollstream[onnx]")


def has_onnx() -> bool:
    """Whether ONNX graphs can be made and run here."""
    return all(importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime"))
