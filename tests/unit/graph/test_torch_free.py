"""Actors run without torch in the process."""

from __future__ import annotations

import subprocess
import sys

import pytest


def _run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_importing_the_graph_and_acting_without_images_imports_no_framework() -> None:
    _run("""
import sys
import numpy as np
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.spaces import Leaf
observation = Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-1.0,) * 4, high=(1.0,) * 4)
action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
acting = build_acting(ActorCriticPolicy((observation,), (action,)), batch=2)
acting.act({"observation": np.zeros((2, 4), np.float32)}, np.random.default_rng(0))
heavy = {"torch", "jax", "onnx", "onnxruntime", "gymnasium", "matplotlib", "redis"} & set(sys.modules)
assert not heavy, heavy
""")


def test_acting_on_images_in_onnx_never_imports_torch() -> None:
    pytest.importorskip("onnxruntime")
    _run("""
import sys
import numpy as np
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.spaces import Leaf
image = Leaf(name="observation", kind="box", dtype="|u1", shape=(20, 24, 3), low=(0,) * 1440, high=(255,) * 1440)
action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
acting = build_acting(ActorCriticPolicy((image,), (action,), convolutions="atari"), batch=2)
acting.act({"observation": np.zeros((2, 20, 24, 3), np.uint8)}, np.random.default_rng(0))
assert "onnxruntime" in sys.modules
heavy = {"torch", "jax", "gymnasium"} & set(sys.modules)
assert not heavy, heavy
""")
