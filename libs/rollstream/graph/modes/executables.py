"""Which executable runs an API in which mode."""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

from rollstream.errors import ConfigError
from rollstream.graph.executable import Build, NumpyExecutable
from rollstream.graph.modes.requirements import require_jax, require_onnx, require_torch

__all__ = ["MODES", "Mode", "executable_builder"]

Mode = Literal["numpy", "torch", "torch-graph", "torch-compile", "onnx", "jax"]
MODES: tuple[str, ...] = get_args(Mode)


def executable_builder(mode: Mode, *, device: str = "cpu") -> Build:
    """What makes executables of `mode`.

    Raises:
        ConfigError: the mode is unknown, or what it needs is not installed.
    """
    if device != "cpu" and not mode.startswith("torch"):
        raise ConfigError(f"mode {mode!r} runs on the CPU only, got device {device!r}; use a torch mode")
    if mode == "numpy":
        return NumpyExecutable
    if mode in ("torch", "torch-graph", "torch-compile"):
        require_torch(mode)
        from rollstream.graph.backends.torch.tensors import require_device

        require_device(device)
        if mode == "torch":
            from rollstream.graph.backends.torch.executable import TorchExecutable

            return partial(TorchExecutable, device=device)
        from rollstream.graph.backends.torch.static_executable import StaticExecutable

        return partial(StaticExecutable, mode=mode, device=device)
    if mode == "onnx":
        require_onnx(mode)
        from rollstream.graph.backends.onnx.executable import OnnxExecutable

        return OnnxExecutable
    if mode == "jax":
        require_jax(mode)
        from rollstream.graph.backends.jax.executable import JaxExecutable

        return JaxExecutable
    raise ConfigError(f"unknown mode {mode!r}; known: {', '.join(MODES)}")
