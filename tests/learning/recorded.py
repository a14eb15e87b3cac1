"""Recorded data for goals of offline algorithms: scripted controllers, which are good or bad at a known rate, play with a fixed seed.

prepare: tests.learning.recorded:cartpole_mixed        writes cartpole_mixed.npz into the run's folder, returns settings
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

__all__ = [
    "cartpole",
    "cartpole_astray",
    "cartpole_leaving",
    "cartpole_mixed",
    "cartpole_noisy",
    "episodes_of",
    "mean_return",
    "pendulum",
    "pendulum_mixed",
]

Control = Callable[[npt.NDArray[Any], np.random.Generator], Any]


def cartpole(*, random_share: float = 0.0, drift: float = 0.0) -> Control:
    """Pushes to where the pole falls and away from the ends of the track, which holds it up for good, but for so large a share of
    random pushes, and but for a drift, which leads off the track."""

    def control(observation: npt.NDArray[Any], generator: np.random.Generator) -> int:
        if generator.random() < random_share:
            return int(generator.integers(2))
        x, x_dot, angle, angle_dot = observation.tolist()
        home = drift if drift else 0.02 * x + 0.06 * x_dot
        return int(home + angle + 0.3 * angle_dot > 0)

    return control


def cartpole_leaving(*, share: float) -> Control:
    """The good controller, but in a share of the steps one that leads off the track on the side where the cart is; both with a tenth of
    random pushes."""
    good, right, left = cartpole(random_share=0.1), cartpole(random_share=0.1, drift=0.2), cartpole(random_share=0.1, drift=-0.2)

    def control(observation: npt.NDArray[Any], generator: np.random.Generator) -> Any:
        if generator.random() >= share:
            return good(observation, generator)
        return (left if observation[0] < 0 else right)(observation, generator)

    return control


def pendulum(*, deviation: float) -> Control:
    """Pumps energy until the pole stands, then holds it; with Gaussian noise on the torque, which is bounded by 2."""

    def control(observation: npt.NDArray[Any], generator: np.random.Generator) -> npt.NDArray[np.float32]:
        cosine, sine, speed = observation.tolist()
        angle = float(np.arctan2(sine, cosine))
        energy = 0.5 * speed * speed / 3 + 5.0 * (cosine - 1.0)  # 0 when it stands still on top
        torque = -10.0 * angle - 2.0 * speed if cosine > 0.85 else (-2.0 if energy > 0 else 2.0) * np.sign(speed or 1.0)
        noisy = torque + deviation * generator.standard_normal()
        return np.asarray([np.clip(noisy, -2.0, 2.0)], np.float32)

    return control


def episodes_of(environment: str, plays: list[tuple[Control, int]], *, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Columns of all transitions of so many episodes of each controller, as NumPy archives of recorded data have them."""
    generator = np.random.default_rng(seed)
    made = gymnasium.make(environment)
    names = ("observation", "action", "reward", "next_observation", "terminated", "truncated")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for control, count in plays:
        for _ in range(count):
            observation, _ = made.reset(seed=int(generator.integers(1 << 30)))
            ended = False
            while not ended:
                action = control(observation, generator)
                later, reward, terminated, truncated, _ = made.step(action)
                values = (observation, action, reward, later, terminated, truncated)
                for name, value in zip(names, values, strict=True):
                    columns[name].append(value)
                observation, ended = later, terminated or truncated
    made.close()
    return {name: np.asarray(values) for name, values in columns.items()}


def mean_return(columns: dict[str, npt.NDArray[Any]]) -> float:
    """Mean return of the episodes in it."""
    ends = columns["terminated"] | columns["truncated"]
    return float(columns["reward"].sum() / ends.sum())


def cartpole_noisy(folder: Path) -> dict[str, Any]:
    """CartPole-v1: a good controller with much noise."""
    return _saved(folder / "cartpole_noisy.npz", episodes_of("CartPole-v1", [(cartpole(random_share=0.4), 40)], seed=0))


def cartpole_mixed(folder: Path) -> dict[str, Any]:
    """CartPole-v1: seven of ten steps, and ten of eleven episodes, are those of a controller that drifts off the track."""
    plays = [(cartpole(random_share=0.2, drift=0.1), 80), (cartpole(random_share=0.2), 8)]
    return _saved(folder / "cartpole_mixed.npz", episodes_of("CartPole-v1", plays, seed=0))


def cartpole_astray(folder: Path) -> dict[str, Any]:
    """CartPole-v1: in every state three of four actions are those of a controller that leaves the track on the nearer side, so whoever
    does what is done most often leaves it too. The mean return is 119."""
    return _saved(folder / "cartpole_astray.npz", episodes_of("CartPole-v1", [(cartpole_leaving(share=0.75), 100)], seed=0))


def pendulum_mixed(folder: Path) -> dict[str, Any]:
    """Pendulum-v1: as many episodes with much noise as with little."""
    columns = episodes_of("Pendulum-v1", [(pendulum(deviation=6.0), 100), (pendulum(deviation=0.5), 50)], seed=0)
    return _saved(folder / "pendulum_mixed.npz", columns)


def _saved(path: Path, columns: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
    arrays: dict[str, Any] = columns
    np.savez(path, **arrays)
    return {"offline": str(path)}
