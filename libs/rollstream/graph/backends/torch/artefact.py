"""Compiled updates as files: traced, compiled ahead of time (AOTInductor), and found again by what was traced.

    cache/<key>-<digest>.pt2     key: traced program, shapes, PyTorch's version, CPU;  digest: of the file, so that damage is seen

Measured: such a file loads in 12 ms, without importing Inductor, and its update takes 225 microseconds (PPO, 256 rows, 2x64) where
Inductor in the process takes 275. `standalone_compile(...).save` needs 10 s and more to load, since it compiles its kernels again.
What it costs is the compiling: half a minute of one core, which nobody waits for.
"""

from __future__ import annotations

import hashlib
import os
import platform
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rollstream.clock import SystemClock
from rollstream.graph.backends.torch.compiling import traced
from rollstream.graph.backends.torch.failure import cannot_build, require_compiler
from rollstream.graph.backends.torch.ops import TorchOps
from rollstream.graph.backends.torch.program import UpdateProgram
from rollstream.graph.backends.torch.static_update import ProgramEngine, examples_of
from rollstream.graph.inputs import flat_inputs, sample
from rollstream.graph.modes.background import Artefact
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import UpdatePlan, UpdateState

__all__ = ["build_artefact", "load_artefact"]

MODE = "torch-graph"
FORMAT = 1
"""Part of the key; goes up when the arguments of the program change."""
TOLERANCE = 1e-4
"""Largest difference of a compiled update from the same update uncompiled, relative to 1 + its size."""
LEFTOVER_S = 86_400.0
"""Age of a half-written file that nobody writes any more."""


def build_artefact(plan: UpdatePlan, options: TorchOptions, *, directory: Path) -> Artefact:
    """Find the compiled update in `directory`, or make it there. Only files whose digest fits and that compute the right thing are taken.

    Raises:
        ConfigError: it cannot be traced or compiled; with the component's path and the operator.
    """
    clock = SystemClock()
    start_s = clock.monotonic_s()
    torch.set_num_threads(1)  # how many the compiled update will use; with small networks one is the fastest
    state = UpdateState.start(plan, plan.layout.init(0))
    program = _program(plan, options)
    examples = _examples(plan, state)
    require_compiler(MODE)
    try:
        graph = traced(program.whole, [example.clone() for example in examples])
    except Exception as error:
        raise cannot_build(MODE, error) from error
    traced_s = clock.monotonic_s()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = _key(graph, examples)
    path = _found(directory, key, graph, examples)
    cached = path is not None
    if path is None:
        try:
            path = _compiled(directory, key, graph, examples)
        except Exception as error:
            raise cannot_build(MODE, error) from error
    return Artefact(
        path=path,
        row_names=program.row_names,
        nodes=len(graph.graph.nodes),
        trace_s=traced_s - start_s,
        compile_s=clock.monotonic_s() - traced_s,
        cached=cached,
    )


def load_artefact(found: Artefact, plan: UpdatePlan, state: UpdateState, options: TorchOptions) -> ProgramEngine:
    """The engine that runs a compiled update on `state`."""
    assert found.path is not None, "there is something to load"
    program = _program(plan, options)
    return ProgramEngine(
        _loaded(found.path), plan, state, columns=program.columns, settings=program.settings, row_names=found.row_names
    )


def _program(plan: UpdatePlan, options: TorchOptions) -> UpdateProgram:
    return UpdateProgram(plan, TorchOps(mixed=options.mixed_precision), accumulate=options.accumulate)


def _examples(plan: UpdatePlan, state: UpdateState) -> list[Tensor]:
    """Arguments with random columns and settings."""
    examples = examples_of(plan, state, device="cpu")
    drawn = sample(plan.arguments, rows=plan.batch_rows, generator=np.random.default_rng(0))
    inputs = list(flat_inputs(plan.arguments))
    settings = [1e-3, *(float(drawn[item.name]) for item in inputs if item.role == "scalar")]
    columns = [torch.from_numpy(drawn[item.name]) for item in inputs if item.role == "column"]
    before = len(examples) - len(columns) - 1
    return [*examples[:before], torch.tensor(settings), *columns]


def _key(graph: torch.fx.GraphModule, examples: Sequence[Tensor]) -> str:
    """24 hex digits that change with everything that the compiled update depends on."""
    digest = hashlib.sha256(repr((FORMAT, torch.__version__, platform.machine(), _cpu())).encode())
    digest.update(graph.code.encode())
    digest.update(repr([(tuple(example.shape), str(example.dtype)) for example in examples]).encode())
    for node in graph.graph.find_nodes(op="get_attr"):
        constant = getattr(graph, node.target)
        digest.update(repr((node.target, tuple(constant.shape), str(constant.dtype))).encode())
        digest.update(constant.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:24]


def _cpu() -> str:
    """What of the CPU the compiler makes use of."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def _found(directory: Path, key: str, graph: Any, examples: Sequence[Tensor]) -> Path | None:
    """A file of this key that is whole and right; others of the key are deleted, and so are old leftovers."""
    now_s = SystemClock().wall_s()
    for leftover in directory.glob("*.part.pt2"):
        with suppress(OSError):
            if now_s - leftover.stat().st_mtime > LEFTOVER_S:
                leftover.unlink()
    for path in sorted(directory.glob(f"{key}-*.pt2")):
        with suppress(Exception):  # whatever a damaged file makes the loader raise
            if path.name == f"{key}-{_digest(path)}.pt2" and _right(path, graph, examples):
                return path
        path.unlink(missing_ok=True)
    return None


def _compiled(directory: Path, key: str, graph: torch.fx.GraphModule, examples: Sequence[Tensor]) -> Path:
    from torch._inductor import aoti_compile_and_package, config

    part = directory / f"{key}.{os.getpid()}.part.pt2"
    with warnings.catch_warnings(), config.patch({"compile_threads": 1}):  # no processes that could outlive this one
        warnings.simplefilter("ignore")
        exported = torch.export.export(_Module(graph), tuple(example.clone() for example in examples), strict=False)
        aoti_compile_and_package(exported, package_path=str(part))
    try:
        assert _right(part, graph, examples), "the compiled update computes something else than the traced one"
        path = directory / f"{key}-{_digest(part)}.pt2"
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return path


class _Module(torch.nn.Module):
    """A traced program as `torch.export` wants it."""

    def __init__(self, graph: torch.fx.GraphModule) -> None:
        super().__init__()
        self._graph = graph

    def forward(self, *arguments: Tensor) -> Any:
        return self._graph(*arguments)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _loaded(path: Path) -> Any:
    """The program in a file. By the loader beneath `aoti_load_package`, which imports Inductor and takes 20 microseconds more per call."""
    loader = torch._C._aoti.AOTIModelPackageLoader(str(path), "model", False, 1, -1)
    return lambda *arguments: loader.run(list(arguments))


def _right(path: Path, graph: Any, examples: Sequence[Tensor]) -> bool:
    """Does it compute what was traced?"""
    ours, theirs = ([example.clone() for example in examples] for _ in range(2))
    outputs = [*_loaded(path)(*ours), *ours]
    expected = [*graph(*theirs), *theirs]
    return all(
        torch.allclose(one.double(), other.double(), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        for one, other in zip(outputs, expected, strict=True)
    )
