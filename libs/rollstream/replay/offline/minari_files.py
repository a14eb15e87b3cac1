"""Minari datasets as rows: a dataset of the local collection by its id, or the folder of one.

Minari keeps T + 1 observations for T steps of an episode, as we do, so nothing has to be made up; observations and actions of
nested spaces become dotted columns, as they do in an environment. The package is an extra: `pip install 'rollstream[minari]'`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.replay.offline.recorded import OfflineRows, cast
from rollstream.spaces import Column, Flag, RowSpec, SpaceLayout, row_spec

if TYPE_CHECKING:
    import minari

__all__ = ["load_minari"]

Array = npt.NDArray[Any]


def load_minari(source: Path | str, *, float32: bool = False, episodes: Sequence[int] | None = None) -> OfflineRows:
    """Read a Minari dataset from this machine; nothing is downloaded.

    Args:
        source: id such as `mujoco/hopper/expert-v0`, or the folder of a dataset.
        float32: store columns of float64 as float32.
        episodes: indices of the episodes wanted; None: all.

    Raises:
        ConfigError: Minari is not installed, there is no such dataset, or it is damaged.
    """
    dataset = _open(source)
    layouts = {
        "observation": SpaceLayout(dataset.observation_space, "observation"),
        "action": SpaceLayout(dataset.action_space, "action"),
    }
    spec = row_spec(layouts["observation"].leaves, layouts["action"].leaves)
    if float32:
        spec = RowSpec(tuple(_narrowed(column) for column in spec.columns))
    parts = [_episode(episode, layouts, spec, source=str(source)) for episode in _episodes(dataset, source, episodes)]
    rows = np.concatenate(parts) if parts else np.zeros(0, spec.dtype)
    return OfflineRows(source=str(source), row_spec=spec, rows=rows, episodic=True)


def _open(source: Path | str) -> minari.MinariDataset:
    try:
        import minari
    except ImportError as error:
        raise ConfigError(f"reading {source} needs Minari: pip install 'rollstream[minari]'") from error
    folder = Path(source)
    try:
        if (folder / "data").is_dir():
            return minari.MinariDataset(folder / "data")
        if folder.name == "data" and folder.is_dir():
            return minari.MinariDataset(folder)
        known = sorted(minari.list_local_datasets())
        if str(source) in known:
            return minari.load_dataset(str(source), download=False)
    except Exception as error:  # a damaged dataset raises whatever its library does
        raise ConfigError(f"Minari cannot open the dataset {source}: {error or type(error).__name__}") from error
    raise ConfigError(
        f"no Minari dataset {str(source)!r} on this machine; there are: {', '.join(known) or 'none'} (`minari download` gets more)"
    )


def _episodes(dataset: minari.MinariDataset, source: Path | str, wanted: Sequence[int] | None) -> list[Any]:
    known = set(np.asarray(dataset.episode_indices).tolist())
    unknown = sorted(set(wanted or ()) - known)
    if unknown:
        raise ConfigError(f"dataset {source} has no episode {unknown[0]}; it has {len(known)}, from 0 on")
    try:
        return list(dataset.iterate_episodes(None if wanted is None else np.asarray(wanted)))
    except Exception as error:  # a damaged dataset raises whatever its library does
        raise ConfigError(f"episodes of {source} cannot be read: {error or type(error).__name__}") from error


def _episode(episode: Any, layouts: dict[str, SpaceLayout], spec: RowSpec, *, source: str) -> npt.NDArray[np.void]:
    steps = len(episode.rewards)
    rows = np.zeros(steps + 1, spec.dtype)
    columns: dict[str, Array] = {"reward": np.asarray(episode.rewards)}
    columns |= layouts["action"].read(episode.actions, batch=steps)
    observed = layouts["observation"].read(episode.observations, batch=steps + 1)
    for column in spec.columns:
        array = observed.get(column.name)
        if array is not None:
            rows[column.name] = cast(array, column, source=source)
        else:
            rows[column.name][:steps] = cast(columns[column.name], column, source=source)
    rows["flags"][0] = Flag.FIRST
    terminated = bool(steps) and bool(episode.terminations[-1])
    rows["flags"][steps] |= Flag.FINAL | (Flag.TERMINATED if terminated else Flag.TRUNCATED)
    return rows


def _narrowed(column: Column) -> Column:
    return Column(name=column.name, dtype="<f4", shape=column.shape) if column.dtype == "<f8" else column
