"""Actors run without torch in the process."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_graph_and_acting_in_numpy_never_imports_torch() -> None:
    program = """
import sys
import numpy as np
from rollstream.graph import ActorCriticPolicy, build_acting
from rollstream.spaces import Leaf
observation = Leaf(name="observation", kind="box", dtype="<f4", shape=(4,), low=(-1.0,) * 4, high=(1.0,) * 4)
action = Leaf(name="action", kind="discrete", dtype="<i8", shape=(), counts=(2,), starts=(0,))
acting = build_acting(ActorCriticPolicy((observation,), (action,)), batch=2)
acting.act({"observation": np.zeros((2, 4), np.float32)}, np.random.default_rng(0))
heavy = {"torch", "gymnasium", "matplotlib", "redis"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
