"""A task that only a recurrent policy with burn-in can learn, trained from sequences of three replay shards, one killed on the way.

The chain: a cue, +1 or -1, is seen in the first step only; nine steps later the action that matches it is worth 1. Items are
sequences of three steps, so the last one of an episode does not hold the cue: its burn-in does. The same training without burn-in
shows that it is needed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from rollstream.clock import SystemClock
from rollstream.replay import MinSize, Prioritized, Sample, Sequence, TableClient, TableSpec, TrajectoryWriter
from rollstream.store import Address, Store

pytestmark = [pytest.mark.learning, pytest.mark.timeout(420)]

EXPERIMENT = "chain-abc123"
SHARDS = 3
STEPS = 10
ENVIRONMENTS = 8
BATCH_ITEMS = 64
UNITS = 24
UPDATES = 600
KILL_AT_UPDATE = 150
EXPLORE = 0.3


class Chain:
    """N chains side by side; the observation is (cue in the first step, else 0; share of the chain that is done)."""

    def __init__(self, environments: int, generator: np.random.Generator) -> None:
        self._generator = generator
        self.cue = generator.choice([-1.0, 1.0], environments)
        self.step_number = 0

    def observe(self) -> npt.NDArray[np.float32]:
        seen = self.cue if self.step_number == 0 else np.zeros(len(self.cue))
        return np.stack([seen, np.full(len(self.cue), self.step_number / STEPS)], axis=1).astype(np.float32)

    def step(self, action: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float32], bool]:
        """Reward of the action, and whether the chain ended; then `begin` is to be called."""
        self.step_number += 1
        over = self.step_number == STEPS
        right = (action * 2 - 1) == self.cue
        return (right & over).astype(np.float32), over

    def begin(self) -> None:
        self.cue = self._generator.choice([-1.0, 1.0], len(self.cue))
        self.step_number = 0


class Network(torch.nn.Module):
    """Action values from a recurrent state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.GRU(2, UNITS, batch_first=True)
        self.head = torch.nn.Linear(UNITS, 2)

    def forward(self, observation: torch.Tensor, state: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        out, after = self.cell(observation, state)
        return self.head(out), after


@dataclass
class Shards:
    """Replay services, one process a shard."""

    address: Address
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, shard: int) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "ROLLSTREAM_REDIS_URL": str(self.address),
            "ROLLSTREAM_MEMBER_ID": f"replay-{shard}",
            "ROLLSTREAM_SHARD": str(shard),
            "ROLLSTREAM_LEASE_TTL_S": "1.0",
        }
        return subprocess.Popen([sys.executable, "-m", "rollstream_replay"], env=environment, stderr=subprocess.DEVNULL)

    def kill_and_start(self, shard: int) -> None:
        self.processes[shard].send_signal(signal.SIGKILL)
        self.processes[shard].wait()
        self.processes[shard] = self.start(shard)


@contextmanager
def shards_on(address: Address) -> Iterator[Shards]:
    shards = Shards(address)
    shards.processes = [shards.start(shard) for shard in range(SHARDS)]
    try:
        yield shards
    finally:
        for process in shards.processes:
            process.terminate()
        for process in shards.processes:
            process.wait(timeout=30)


class Actor:
    """Acts with the learner's network, writes to the shard of its writer."""

    def __init__(self, writer: TrajectoryWriter, network: Network, generator: np.random.Generator) -> None:
        self._writer, self._network, self._generator = writer, network, generator
        self._chain = Chain(ENVIRONMENTS, generator)
        self._state: torch.Tensor | None = None
        self.keys: list[npt.NDArray[np.uint64]] = []

    def act(self) -> None:
        """One step of all environments."""
        observation = self._chain.observe()
        with torch.no_grad():
            values, self._state = self._network(torch.from_numpy(observation)[:, None], self._state)
        greedy = values[:, 0].argmax(dim=1).numpy()
        explored = self._generator.random(ENVIRONMENTS) < EXPLORE
        action = np.where(explored, self._generator.integers(0, 2, ENVIRONMENTS), greedy)
        reward, over = self._chain.step(action)
        ended = np.full(ENVIRONMENTS, over)
        written = self._writer.append(
            {"observation": observation, "action": action, "reward": reward},
            terminated=ended,
            final={"observation": self._chain.observe()},
        )
        if written is not None:
            self.keys.append(written.keys["chain"])
        if over:
            self._chain.begin()
            self._state = None


def loss_of(network: Network, target: Network, sample: Sample) -> tuple[torch.Tensor, torch.Tensor]:
    """Squared errors of one-step values over each core, the lead only carrying the state there; errors by item [B]."""
    tensors = sample.torch()
    observation, mask = tensors["observation"], tensors["item.mask"]
    core = sample.core_start
    with torch.no_grad():
        ahead, _ = target(observation)
    values, _ = network(observation)
    # Lead rows stand right of padding whose observations are 0; a state that has seen only zeros is not the initial one, but
    # it is the same for every item, and the network learns with it.
    flags = tensors["flags"].long()
    final = (flags[:, core + 1 :] & 8) != 0
    bootstrap = torch.where(final, torch.zeros(()), 0.9 * ahead[:, core + 1 :].max(dim=2).values)
    chosen = values[:, core:-1].gather(2, tensors["action"][:, core:-1].long()[..., None])[..., 0]
    error = (tensors["reward"][:, core:-1] + bootstrap - chosen) * (mask[:, core:-1] & mask[:, core + 1 :])
    return (error**2).sum(dim=1), error.detach().abs().amax(dim=1)


def success(network: Network, generator: np.random.Generator) -> float:
    """Share of chains that the greedy policy ends rightly."""
    chain, state = Chain(500, generator), None
    for _ in range(STEPS):
        with torch.no_grad():
            values, state = network(torch.from_numpy(chain.observe())[:, None], state)
        reward, _ = chain.step(values[:, 0].argmax(dim=1).numpy())
    return float(reward.mean())


def train(store: Store, shards: Shards, *, burn_in: int, kills: bool) -> float:
    """Train for `UPDATES` updates; returns the share of right answers."""
    torch.manual_seed(burn_in)
    generator = np.random.default_rng(burn_in)
    network, target = Network(), Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    client = TableClient(store, shards.address, table_id=f"{EXPERIMENT}.chain", clock=SystemClock())
    spec: Any = TableSpec(
        name="chain",
        sampler=Prioritized(exponent=0.5),
        limiter=MinSize(min_items=500),
        max_items=4_000,
        shards=SHARDS,
        rows=(("observation", "<f4", (2,)), ("action", "<i8", ()), ("reward", "<f4", ())),
    )
    client.create(spec, deadline_s=60)
    rule = Sequence(length=3, stride=2, burn_in=burn_in, tail="aligned")
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                TrajectoryWriter(
                    store,
                    shards.address,
                    experiment=EXPERIMENT,
                    tables={"chain": rule},
                    environments=ENVIRONMENTS,
                    clock=SystemClock(),
                    flush_steps=STEPS + 2,
                )
            )
            for _ in range(SHARDS)
        ]
        actors = [Actor(writer, network, generator) for writer in writers]
        for update in range(UPDATES):
            for actor in actors:
                for _ in range(STEPS if update < 20 else 2):
                    actor.act()
            if kills and update == KILL_AT_UPDATE:
                shards.kill_and_start(1)
            if update < 10:
                continue
            sample = client.sample(batch_items=BATCH_ITEMS, deadline_s=60)
            assert sample.core_start == (burn_in and int(sample.lead.max()))
            loss, error = loss_of(network, target, sample)
            weight = torch.from_numpy((sample.table_items * sample.probability) ** -0.5).float()
            optimizer.zero_grad()
            (loss * weight / weight.max()).mean().backward()
            optimizer.step()
            client.update_priorities(sample.keys, error.numpy() + 1e-3)
            if update % 20 == 0:
                target.load_state_dict(network.state_dict())
        for writer in writers:
            writer.flush(deadline_s=60)
        keys = np.concatenate([key for actor in actors for key in actor.keys])
        assert set((keys >> np.uint64(56)).tolist()) == set(range(SHARDS)), "each shard got items"
        described = client.describe()
        assert described["inserted"] >= len(keys)
        assert described["items"] == min(described["inserted"], described["items"]) <= spec.max_items + SHARDS
        assert client.get(keys[-50:], missing_ok=True).keys.tolist() == keys[-50:].tolist()
        client.drop()
    client.close()
    return success(network, generator)


def test_the_chain_is_learned_with_burn_in_through_three_shards_of_which_one_is_killed(store: Store, address: Address) -> None:
    with shards_on(address) as shards:
        assert train(store, shards, burn_in=STEPS, kills=True) >= 0.95


def test_without_burn_in_the_chain_is_not_learned(store: Store, address: Address) -> None:
    with shards_on(address) as shards:
        assert train(store, shards, burn_in=0, kills=False) <= 0.8
