"""A policy trained on a real cell acts over HTTP as its exported file does."""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
import pytest

TRAIN = ("--name", "short", "--set", "evaluation_episodes=0", "--set", "rollout_steps=64", "--envs-per-actor", "4")


def test_an_exported_policy_and_act_give_the_same_actions(shell: Any) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    up = shell.json("up", "--replay-shards", "0", "--actors", "1", "--json")
    try:
        submitted = shell.json("submit", "--algo", "ppo", "--env", "CartPole-v1", *TRAIN, "--stop-steps", "2000", "--json")
        experiment = submitted["id"]
        shell.until(lambda: shell.json("status", experiment, "--json")["phase"] == "succeeded")
        state = json.loads((shell.directory / "runs" / "cell" / "cell.json").read_text())
        observations = np.random.default_rng(0).uniform(-1, 1, (64, 4)).astype(np.float32)
        headers = {"Authorization": f"Bearer {state['token']}"}
        url = f"{up['url']}/v1/experiments/{experiment}/act"
        reply = httpx.post(url, json={"observations": observations.tolist()}, headers=headers, timeout=30.0).json()
        places = [path.parent for path in shell.directory.glob(f"runs/**/{experiment}/checkpoints")]
        exported = shell.json("export", str(places[0]), "--format", "onnx", "--to", "policy", "--json")
    finally:
        shell.json("down", "--json")
    assert exported["weights_version"] == reply["weights_version"]
    session = onnxruntime.InferenceSession(str(shell.directory / "policy" / "policy.onnx"))
    (actions,) = session.run(["action"], {"observation": observations})
    assert actions.tolist() == reply["actions"]
    assert set(reply["actions"]) == {0, 1}
