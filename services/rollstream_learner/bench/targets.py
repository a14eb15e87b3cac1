"""What is meant to be reached, as data, and whether a document of figures reaches it. `TARGETS` are those of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["TARGETS", "Target", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One target: `name` for people, where its figure lies in the document, and the bound it keeps."""

    name: str
    path: tuple[str, ...]
    bound: float
    at: Literal["least", "most"] = "most"


def judge(document: Mapping[str, Any], targets: Sequence[Target] | None = None) -> list[dict[str, Any]]:
    """All targets (None: those of the graph) against a document; one that was not measured is neither met nor missed."""
    found = []
    for target in TARGETS if targets is None else targets:
        measured = _at(document, target.path)
        met = None
        if measured is not None:
            met = measured >= target.bound if target.at == "least" else measured <= target.bound
        found.append({"target": target.name, f"at_{target.at}": target.bound, "measured": measured, "met": met})
    return found


def _at(document: Any, path: Sequence[str]) -> float | None:
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return None if document is None else float(document)


def _act(net: str, rows: int, bound: float) -> Target:
    return Target(name=f"act of {net}, batch {rows}, us", path=("act", net, str(rows), "best_us"), bound=bound)


TARGETS = (
    _act("mlp", 1, 20.0),
    _act("mlp", 8, 25.0),
    _act("mlp", 64, 60.0),
    *(
        Target(
            name=f"act of mlp, batch {rows}, times as fast as torch inference mode",
            path=("act", "mlp", str(rows), "speedup"),
            bound=bound,
            at="least",
        )
        for rows, bound in ((1, 4.5), (8, 4.0), (64, 2.4))
    ),
    *(
        Target(
            name=f"act of mlp, batch {rows}, share of a hand-written NumPy forward",
            path=("act", "mlp", str(rows), "share_of_plain_numpy"),
            bound=1.3,
        )
        for rows in (1, 8, 64)
    ),
    _act("cnn", 1, 200.0),
    _act("cnn", 8, 1_200.0),
    _act("cnn", 64, 8_000.0),
    Target(
        name="PPO update of 256 in an epoch of 16, times as fast as nn.Module and torch.optim.Adam",
        path=("update", "ppo_epoch", "speedup"),
        bound=5.0,
        at="least",
    ),
    Target(name="PPO update of 256, torch-graph as a share of jax", path=("update", "ppo", "graph_share_of_jax"), bound=1.3),
    Target(name="PPO update of 256 with GAE, ms", path=("update", "ppo_with_gae", "best_ms"), bound=1.0),
    Target(name="DQN update of 256, ms", path=("update", "dqn", "best_ms"), bound=0.6),
    Target(
        name="CNN update of 256 frames, share of the best of plain torch eager and torch.compile",
        path=("update", "cnn", "share_of_plain"),
        bound=1.0,
    ),
    Target(name="declare and build PPO eager, ms", path=("build", "ppo", "torch", "first_ms"), bound=20.0),
    Target(name="declare and build dueling prioritized DQN eager, ms", path=("build", "dqn", "torch", "first_ms"), bound=20.0),
    Target(name="build PPO in jax, s", path=("build", "ppo", "jax", "first_s"), bound=2.5),
    Target(name="recompiles after the first", path=("build", "recompiles"), bound=0),
    Target(name="component over hand-written eager torch, batch 64, share", path=("overhead", "64", "share"), bound=1.05),
    Target(name="Ape-X actor, times RLlib's worker", path=("apex", "times_rllib"), bound=2.0, at="least"),
    Target(name="Ape-X actor, share of a bare Gymnasium loop", path=("apex", "share_of_bare_loop"), bound=0.85, at="least"),
    Target(name="gradients of 1 x 256 against 2 x 128, largest difference", path=("parallel", "gradient_difference"), bound=1e-6),
    Target(name="actor process, resident MiB", path=("actor", "rss_mb"), bound=150.0),
    Target(name="actor process, s until ready", path=("actor", "ready_s"), bound=1.5),
)
