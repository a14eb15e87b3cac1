"""An experiment in a cell with weights, and its policy in the test's process: what answers over HTTP is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rollstream.acting import Policy
from rollstream.algorithms import make_agent
from rollstream.envs import inspect_environment
from rollstream.graph import build_acting, declare
from rollstream.seeding import child_generator
from rollstream.spaces import columns_from_json
from rollstream.store import Experiments, Store
from rollstream.weights import WeightStore

__all__ = ["TOYS", "Published"]

TOYS = "rollstream.envs.toy"


class Published:
    """See the module."""

    def __init__(self, control: Any, store: Store, spec: dict[str, Any]) -> None:
        reply = control.http.post("/v1/experiments", json=spec)
        assert reply.status_code == 201, reply.text
        self.id = reply.json()["id"]
        self.http = control.http
        self.store = store
        self.version = 0
        told = Experiments(store).spec(self.id)
        seen = inspect_environment(told.environment, allow=(TOYS,))
        self.observation, self.actions = seen.observation_leaves, seen.action_leaves
        self.agent = make_agent(told.algorithm, told.settings, observation=self.observation, actions=self.actions)
        self.extra = {"scalar.epsilon": np.float32([0.5])} if told.algorithm == "dqn" else {}

    def publish(self, seed: int) -> None:
        """Publish first weights of this seed."""
        declared = declare(self.agent.policy)
        weights = declared.layout.split(declared.layout.init(seed) + np.float32(0.01))
        self.publish_tensors({**weights, **declared.state_layout.split(declared.state_layout.init(seed))})

    def publish_tensors(self, tensors: Mapping[str, Any]) -> None:
        """Publish these tensors, as a learner does."""
        self.version += 1
        WeightStore(self.store, experiment=self.id).publish(self.version, {**tensors, **self.extra})

    def policy(self, *, batch: int, seed: int = 0) -> Policy:
        """The policy with the newest weights, as actors and the evaluation make it."""
        acting = build_acting(self.agent.policy, batch=batch)
        generator = child_generator(seed, "act")
        policy = Policy(acting=acting, actions=self.agent.actions, extra=self.agent.extra_columns, generator=generator)
        weights = WeightStore(self.store, experiment=self.id).fetch()
        assert weights is not None
        policy.load(weights)
        return policy

    def columns(self, observations: list[Any]) -> dict[str, Any]:
        """Columns of observations in JSON."""
        return columns_from_json(self.observation, "observation", {str(at): value for at, value in enumerate(observations)})

    def act(self, **body: Any) -> Any:
        """The reply of the endpoint."""
        return self.http.post(f"/v1/experiments/{self.id}/act", json=body)
