"""Checkpoints on disk: a folder a cut, written beside its place, flushed, then renamed, so that a half one never shows.

<folder>/00000012/manifest.json        what is in it, with a SHA-256 of every file
                  state.json           counters, schedules, generator states, buffers of the flow
                  arrays.safetensors   parameters, moments and every other array
                  <name>.bin           parts as they come
                  <name>.export        parts that are too large for memory, e.g. a table: written and read by their owners
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from rollstream.checkpoint.tree import Tree, join, split
from rollstream.errors import CheckpointError

__all__ = [
    "CheckpointRecord",
    "LoadedCheckpoint",
    "list_checkpoints",
    "newest_good",
    "prune",
    "read_checkpoint",
    "resolve",
    "verify_checkpoint",
    "write_checkpoint",
]

FORMAT = 1
MANIFEST = "manifest.json"
EXPORT = ".export"
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRecord:
    """A checkpoint that is there: its number (grows by one), where, and what its manifest says."""

    number: int
    path: Path
    manifest: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        return sum(entry["bytes"] for entry in self.manifest["files"].values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedCheckpoint:
    """A checkpoint read and verified; `exports` are the paths of parts that are not read."""

    record: CheckpointRecord
    state: Tree
    blobs: Mapping[str, bytes]
    exports: Mapping[str, Path]


def write_checkpoint(
    folder: Path,
    *,
    state: Tree,
    blobs: Mapping[str, bytes] | None = None,
    exports: Mapping[str, Callable[[Path], object]] | None = None,
    facts: Mapping[str, Any],
) -> CheckpointRecord:
    """Write the next checkpoint of `folder` and return its record.

    Args:
        state: see `tree`. blobs: parts, stored as they are. facts: what the manifest tells a reader (spec, counters, ...).
        exports: by name, what writes a file of its own at a given path (and flushes it): parts that are too large for memory.

    Raises:
        CheckpointError: the disk is full or not writable; what was half written is removed.
    """
    number = max((record.number for record in list_checkpoints(folder)), default=0) + 1
    final = folder / f"{number:08d}"
    partial = folder / f".{number:08d}.{os.getpid()}.partial"
    value, arrays = split(state)
    contents: dict[str, bytes] = {
        "state.json": json.dumps(value, allow_nan=True).encode(),
        "arrays.safetensors": save_arrays(arrays) if arrays else b"",
    }
    contents |= {f"{name}.bin": blob for name, blob in (blobs or {}).items()}
    files: dict[str, dict[str, Any]] = {name: {"sha256": _sha256(data), "bytes": len(data)} for name, data in contents.items()}
    try:
        partial.mkdir(parents=True)
        for name, data in contents.items():
            _write(partial / name, data)
        for name, write in (exports or {}).items():
            path = partial / f"{name}{EXPORT}"
            write(path)
            digest, size = _digest_file(path)
            files[path.name] = {"sha256": digest, "bytes": size}
        manifest = {
            **facts,
            "format": FORMAT,
            "number": number,
            "arrays": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()},
            "files": files,
        }
        _write(partial / MANIFEST, json.dumps(manifest, indent=1).encode())
        partial.rename(final)
        _sync_folder(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        size = sum(entry["bytes"] for entry in files.values())
        raise CheckpointError(
            f"cannot write checkpoint {final} of {size} bytes: {error.strerror}; free or enlarge the disk, or choose another "
            "folder with ROLLSTREAM_RUNS_DIR. The previous checkpoint is untouched"
        ) from error
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return CheckpointRecord(number=number, path=final, manifest=manifest)


def list_checkpoints(folder: Path) -> list[CheckpointRecord]:
    """Checkpoints of `folder`, oldest first. One without a readable manifest is not listed (`verify_checkpoint` says why)."""
    if not folder.is_dir():
        return []
    records = []
    for path in sorted(folder.iterdir()):
        if path.name.isdigit():
            with suppress(OSError, ValueError):
                manifest = json.loads((path / MANIFEST).read_bytes())
                records.append(CheckpointRecord(number=int(path.name), path=path, manifest=manifest))
    return records


def verify_checkpoint(path: Path) -> list[str]:
    """What is wrong with the checkpoint at `path`, in sentences; empty when it can be trusted."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        files = dict(manifest["files"])
        written = manifest["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        return [f"{path / MANIFEST} cannot be read: {error}"]
    if written != FORMAT:
        return [f"{path} has format {written}; this version reads format {FORMAT}"]
    problems = []
    for name, entry in files.items():
        try:
            digest, size = _digest_file(path / name)
        except OSError as error:
            problems.append(f"{name} cannot be read: {error.strerror}")
            continue
        if size != entry["bytes"]:
            problems.append(f"{name} has {size} bytes, the manifest says {entry['bytes']}")
        elif digest != entry["sha256"]:
            problems.append(f"{name} has changed since it was written: its checksum differs")
    return problems


def read_checkpoint(path: Path) -> LoadedCheckpoint:
    """Verify and read the checkpoint at `path`; a `CheckpointError` lists what is wrong with it."""
    problems = verify_checkpoint(path)
    if problems:
        raise CheckpointError(f"checkpoint {path} cannot be trusted: {'; '.join(problems)}; use an older one (`checkpoint list`)")
    manifest = json.loads((path / MANIFEST).read_bytes())
    contents = {name: (path / name).read_bytes() for name in manifest["files"] if not name.endswith(EXPORT)}
    exports = {name.removesuffix(EXPORT): path / name for name in manifest["files"] if name.endswith(EXPORT)}
    arrays = load_arrays(contents["arrays.safetensors"]) if contents["arrays.safetensors"] else {}
    state = join(json.loads(contents["state.json"]), arrays)
    blobs = {name.removesuffix(".bin"): data for name, data in contents.items() if name.endswith(".bin")}
    record = CheckpointRecord(number=int(manifest["number"]), path=path, manifest=manifest)
    return LoadedCheckpoint(record=record, state=state, blobs=blobs, exports=exports)


def newest_good(folder: Path) -> CheckpointRecord | None:
    """The newest checkpoint that verifies; damaged ones are passed over. None when there is none."""
    for record in reversed(list_checkpoints(folder)):
        if not verify_checkpoint(record.path):
            return record
    return None


def resolve(path: Path) -> CheckpointRecord:
    """The checkpoint that `path` means: a checkpoint itself, a folder of checkpoints, or a run that has such a folder.

    Raises:
        CheckpointError: there is none, or none that can be trusted.
    """
    if (path / MANIFEST).is_file():
        return read_checkpoint(path).record
    folders = [path, path / "checkpoints", *sorted(path.glob("*/checkpoints"))]
    for folder in folders:
        record = newest_good(folder)
        if record is not None:
            return record
    raise CheckpointError(
        f"no checkpoint that can be trusted at {path}; looked in {', '.join(str(folder) for folder in folders)}"
    )


def prune(folder: Path, *, keep: int) -> list[Path]:
    """Remove all but the newest `keep` checkpoints, and leftovers of writers that died; returns what was removed."""
    removed = [record.path for record in list_checkpoints(folder)[:-keep]]
    removed += [path for path in folder.glob(".*.partial") if not _is_alive(path)]
    for path in removed:
        shutil.rmtree(path, ignore_errors=True)
    return removed


def _is_alive(partial: Path) -> bool:
    writer = partial.name.split(".")[2]
    return writer == str(os.getpid()) or (writer.isdigit() and Path(f"/proc/{writer}").exists())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _digest_file(path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
            size += len(block)
    return digest.hexdigest(), size


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
