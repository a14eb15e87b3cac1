"""NumPy archives as recorded transitions: the forms in which people keep them.

    transitions    observation, action, reward, ... [M, ...], with terminated, truncated [M], or with episode_starts / episode_ends,
                   and perhaps next_observation
    rows           flags, version [R] and all columns [R, ...]: what `rollstream replay dump` writes

The plural names of D4RL and others (observations, terminals, timeouts, ...) are understood. `a.b` in a name is a nested column.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError
from rollstream.replay.offline.recorded import OfflineRows, Transitions, rows_of
from rollstream.spaces import Column, Flag, RowSpec

__all__ = ["load_npz", "rows_from_arrays"]

Array = npt.NDArray[Any]
ALIASES = {
    "observations": "observation",
    "obs": "observation",
    "actions": "action",
    "rewards": "reward",
    "next_observations": "next_observation",
    "next_obs": "next_observation",
    "terminal": "terminated",
    "terminals": "terminated",
    "terminations": "terminated",
    "dones": "terminated",
    "timeouts": "truncated",
    "truncations": "truncated",
}
ITEM_PREFIX = "item_"
"""Arrays of a dump that describe its items; a rule makes them anew when it is loaded."""
NEXT = "next_"


def load_npz(
    path: Path | str,
    *,
    rename: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    float32: bool = False,
) -> OfflineRows:
    """Read a NumPy archive.

    Args:
        rename: name in the archive -> name of the column.
        drop: names in the archive that are left out.
        keep: names that are taken as they are, for they are those of the table's columns.
        float32: store columns of float64 as float32.

    Raises:
        ConfigError: the file is no archive, or an array in it cannot be used; the message has its name.

    >>> import numpy as np, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "walk.npz"
    >>> np.savez(path, observations=np.zeros((3, 2), "f4"), actions=np.arange(3), rewards=np.ones(3), terminals=[0, 0, 1])
    >>> load_npz(path).rows["flags"].tolist()
    [1, 0, 0, 10]
    """
    return rows_from_arrays(_read(Path(path)), source=str(path), rename=rename, drop=drop, keep=keep, float32=float32)


def rows_from_arrays(
    arrays: Mapping[str, Any],
    *,
    source: str,
    rename: Mapping[str, str] | None = None,
    drop: Sequence[str] = (),
    keep: Sequence[str] = (),
    float32: bool = False,
) -> OfflineRows:
    """As `load_npz`, of arrays that are in memory already."""
    renames = rename or {}
    for name in [*renames, *drop]:
        if name not in arrays:
            raise ConfigError(f"{source} has no array {name!r}; it has: {', '.join(arrays)}")
    named: dict[str, Array] = {}
    for name, array in arrays.items():
        if name in drop:
            continue
        known = renames.get(name, name if name in keep else ALIASES.get(name, name))
        if known in named:
            raise ConfigError(f"{source} has two arrays for the column {known!r}; drop or rename one of them")
        named[known] = _as_array(name, array, source)
    if "flags" in named:
        return _dumped({name: array for name, array in named.items() if not name.startswith(ITEM_PREFIX)}, source)
    starts = _starts(named, source)
    marks = {name: named.pop(name, None) for name in ("terminated", "truncated")}
    following = {
        name.removeprefix(NEXT): named.pop(name) for name in list(named) if name.startswith(NEXT) and name[len(NEXT) :] in named
    }
    return rows_of(Transitions(source=source, columns=named, following=following, starts=starts, **marks), float32=float32)


def _read(path: Path) -> dict[str, Array]:
    try:
        archive: Any = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ConfigError(f"{path} is no NumPy archive that can be read: {error}") from error
    if isinstance(archive, np.ndarray):
        raise ConfigError(f"{path} holds one array without a name; save columns by name with numpy.savez")
    with archive:
        return {name: _member(archive, name, path) for name in archive.files}


def _member(archive: Any, name: str, path: Path) -> Array:
    try:
        array: Array = archive[name]
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise ConfigError(f"array {name!r} of {path} cannot be read: {error}") from error
    return array


def _as_array(name: str, values: Any, source: str) -> Array:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ConfigError(f"{source}: {name!r} is no array, its parts have different shapes ({error}); pad them") from error


def _starts(named: dict[str, Array], source: str) -> npt.NDArray[np.int64] | None:
    """Where episodes begin, from `episode_starts` or `episode_ends` (one past the last transition of each)."""
    starts, ends = named.pop("episode_starts", None), named.pop("episode_ends", None)
    given = starts if starts is not None else ends
    if given is None:
        return None
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ConfigError(
            f"{source}: starts or ends of episodes must be whole numbers [E], got {given.dtype} of shape {list(given.shape)}"
        )
    numbers = given.astype(np.int64)
    return numbers if starts is not None else np.append(np.zeros(1, np.int64), numbers[:-1])[: len(numbers)]


def _dumped(named: dict[str, Array], source: str) -> OfflineRows:
    """Rows with their flags as they stand; a run that begins in the middle of an episode begins one, for it has no past here."""
    flags, version, starts = named.pop("flags"), named.pop("version", None), named.pop("run_starts", None)
    if flags.dtype != np.uint8 or flags.ndim != 1:
        raise ConfigError(f"{source}: flags must be uint8 [R], got {flags.dtype} of shape {list(flags.shape)}")
    checked = rows_of(Transitions(source=source, columns=named))
    if len(flags) != len(checked.rows):
        raise ConfigError(f"{source}: flags has {len(flags)} entries for {len(checked.rows)} rows; all columns need as many")
    columns = tuple(Column(name=name, dtype=array.dtype.str, shape=array.shape[1:]) for name, array in named.items())
    rows = checked.rows if RowSpec(columns) == checked.row_spec else _restored(named, RowSpec(columns))
    rows["flags"] = flags
    if starts is not None:
        rows["flags"][starts] |= np.uint8(Flag.FIRST)
    if version is not None:
        rows["version"] = version
    episodic = bool(np.any(flags & (Flag.FINAL | Flag.FIRST)))
    return OfflineRows(source=source, row_spec=RowSpec(columns), rows=rows, episodic=episodic)


def _restored(named: Mapping[str, Array], spec: RowSpec) -> npt.NDArray[np.void]:
    rows = np.zeros(len(next(iter(named.values()))), spec.dtype)
    for name, array in named.items():
        rows[name] = array
    return rows
