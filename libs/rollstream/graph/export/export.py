"""Writes a policy and its metadata into a folder.

policy.onnx | policy.pt2 | policy.safetensors     the policy
metadata.json                                     spaces, inputs, outputs, where it comes from, hashes, how to run it
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from rollstream.errors import ConfigError
from rollstream.graph.declare import Component, declare
from rollstream.graph.export.signature import Signature
from rollstream.graph.memory import Memory
from rollstream.graph.modes.requirements import require_onnx, require_torch
from rollstream.spaces import Leaf

__all__ = ["FORMATS", "METADATA", "Format", "export_policy"]

Format = Literal["onnx", "pt2", "safetensors"]
FORMATS: tuple[str, ...] = get_args(Format)
METADATA = "metadata.json"
RUN: Mapping[str, str] = {
    "onnx": "session = onnxruntime.InferenceSession('policy.onnx'); actions = session.run(None, {name: array of the inputs below})",
    "pt2": "program = torch.export.load('policy.pt2'); actions = program.module()({name: tensor of the inputs below})",
    "safetensors": "tensors = safetensors.numpy.load_file('policy.safetensors'); parameters and state by name, as the policy has them",
}


def export_policy(
    policy: Component,
    tensors: Mapping[str, npt.NDArray[Any]],
    *,
    signature: Signature,
    observation: tuple[Leaf, ...],
    form: Format,
    to: Path,
    facts: Mapping[str, Any],
) -> list[Path]:
    """Write `policy` with `tensors` to the folder `to`, and return the files.

    Args:
        tensors: parameters and state by name, as `Update.tensors` gives them.
        observation: leaves of the observation space, for the metadata.
        facts: where it comes from, for the metadata.

    Raises:
        ConfigError: an unknown format, what it needs is not installed, or it cannot do what the policy asks.
        SchemaMismatch: the tensors are of another policy.
    """
    if form not in FORMATS:
        raise ConfigError(f"unknown export format {form!r}; known: {', '.join(FORMATS)}")
    memory = _memory(policy, tensors)
    if form == "onnx":
        require_onnx("onnx")
        from rollstream.graph.backends.onnx.export import onnx_model

        content, outputs = onnx_model(policy, memory=memory, signature=signature)
    elif form == "pt2":
        require_torch("pt2")
        from rollstream.graph.backends.torch.export import torch_program

        content, outputs = torch_program(policy, memory=memory, signature=signature)
    else:
        named = {**memory.live_views, **memory.state_views}
        content, outputs = save({name: np.ascontiguousarray(view) for name, view in named.items()}), []
    to.mkdir(parents=True, exist_ok=True)
    path = to / f"policy.{form}"
    path.write_bytes(content)
    metadata = {
        **facts,
        "format": form,
        "file": path.name,
        "sha256": hashlib.sha256(content).hexdigest(),
        "policy": type(policy).__name__,
        "api": signature.api,
        "parameters": memory.layout.size,
        "layout_hash": memory.layout.hash,
        "inputs": signature.described_inputs(),
        "outputs": outputs,
        "observation_space": [_described(leaf) for leaf in observation],
        "action_space": [{**_described(leaf), "values": _meaning(leaf)} for leaf in signature.actions],
        "how_to_run": RUN[form],
    }
    about = to / METADATA
    about.write_text(json.dumps(metadata, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    return [path, about]


def _memory(policy: Component, tensors: Mapping[str, npt.NDArray[Any]]) -> Memory:
    declared = declare(policy)
    state = {name: tensor for name, tensor in tensors.items() if name in set(declared.state_layout.names)}
    weights = {name: tensor for name, tensor in tensors.items() if name not in state}
    return Memory(
        layout=declared.layout,
        flat=declared.layout.join(weights),
        state_layout=declared.state_layout,
        state=declared.state_layout.join(state),
    )


def _described(leaf: Leaf) -> dict[str, Any]:
    """A leaf for the metadata: one bound where all are equal, null where there is none; no empty fields."""
    fields: dict[str, Any] = {"name": leaf.name, "kind": leaf.kind, "dtype": leaf.dtype, "shape": list(leaf.shape)}
    if leaf.kind == "box":
        fields |= {"low": _bounds(leaf.low), "high": _bounds(leaf.high)}
    elif leaf.counts:
        fields |= {"counts": list(leaf.counts), "starts": list(leaf.starts)}
    return fields


def _bounds(bounds: tuple[float, ...]) -> Any:
    plain = [bound if np.isfinite(bound) else None for bound in bounds]
    return plain[0] if len(set(plain)) == 1 else plain


def _meaning(leaf: Leaf) -> str:
    """What the numbers of an action output are."""
    if leaf.kind == "discrete":
        return f"one of {leaf.starts[0]} to {leaf.starts[0] + leaf.counts[0] - 1}, as the environment counts"
    if leaf.kind == "multi_discrete":
        return "choices as the environment counts them, each from its start"
    if leaf.kind == "multi_binary":
        return "0 or 1"
    return "within the bounds of the space, as the environment takes it"
