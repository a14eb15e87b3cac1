"""The update mode `auto`: starts at once in the mode that builds in milliseconds, and changes over to a compiled update when it is faster.

    start --(large network)--> background build --> trial: both in turns on real updates --> the faster one stays
      '--(small network in NumPy, other device, several ranks)--> stays
      '--(no compiler, or the build failed)--> stays; the report says why

All engines move the same arrays, so changing over between two updates changes nothing but the time they take. The rule, as measured
on two CPU cores (docs/graph.md): NumPy's own update is the fastest of a small network, a compiled program that of a large one and of
convolutions.
"""

from __future__ import annotations

import importlib.util
import logging
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy.typing as npt

from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.graph.modes.background import Artefact, BackgroundBuild
from rollstream.graph.report import Compiled
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import Engine, UpdatePlan, UpdateState

__all__ = ["AutoEngine", "Builds", "build_auto"]

_LOG = logging.getLogger("rollstream.graph")

TRIAL_UPDATES = 16
"""Updates of each engine that are timed, after as many that warm up."""
NUMPY_PARAMETERS_MAX = 120_000
"""Up to here NumPy's update was the fastest: 2x64 units 0.34 ms against 0.48 compiled, 2x128 0.91 against 1.16, 2x256 (137,000
parameters) 8.3 against 8.0, 2x512 38 against 31, each for 256 rows on one core."""


class Builds(Protocol):
    """What brings a compiled update some day; `BackgroundBuild`."""

    def poll(self) -> Artefact | None:
        """The outcome, once."""
        ...


class AutoEngine:
    """See the module, and `rollstream.graph.update_plan.Engine`.

    Attributes:
        mode: what runs now.
        compiled: how the compiled update was made, once there is one.
        remarks: what was decided and why, for the report.
    """

    def __init__(
        self,
        start: Engine,
        *,
        mode: str,
        remark: str,
        clock: Clock,
        background: Builds | None = None,
        load: Callable[[Artefact], Engine] | None = None,
    ) -> None:
        self.mode = mode
        self.compiled: Compiled | None = None
        self.remarks: tuple[str, ...] = ()
        self._remark(remark)
        self._start_mode = mode
        self._engines: list[Engine] = [start]
        self._staged: list[Sequence[Any]] = [()]
        self._last = start
        self._clock = clock
        self._background = background
        self._load = load
        self._buffers: Mapping[str, npt.NDArray[Any]] = {}
        self._times_s: tuple[list[float], list[float]] = ([], [])

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[int]:
        self._buffers = buffers
        self._staged = [engine.stage(buffers) for engine in self._engines]
        return range(len(self._staged[0]))

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        if self._background is not None:
            self._look()
        if len(self._engines) > 1:
            self._try(minibatch, learning_rate=learning_rate, scalars=scalars)
            return
        self._last = self._engines[0]
        self._last.step(self._staged[0][minibatch], learning_rate=learning_rate, scalars=scalars)

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return self._last.rows()

    def pull(self) -> None:
        """Of the first engine; a second one runs on the arrays themselves."""
        _call(self._engines[0], "pull")

    def push(self) -> None:
        """As `pull`."""
        _call(self._engines[0], "push")

    def _remark(self, text: str) -> None:
        """For the report, and for whoever reads the learner's log."""
        self.remarks += (text,)
        _LOG.info("the update %s", text)

    def _look(self) -> None:
        """Is there a compiled update by now?"""
        assert self._background is not None and self._load is not None
        found = self._background.poll()
        if found is None:
            return
        self._background = None
        if found.path is None:
            self._remark(f"stays in mode {self.mode!r}: {found.why_not}")
            return
        try:
            candidate = self._load(found)
        except Exception as error:  # of a file that another machine made, or that someone damaged
            self._remark(f"stays in mode {self.mode!r}: the compiled update cannot be loaded: {error}")
            return
        self.compiled = Compiled(nodes=found.nodes, trace_s=found.trace_s, compile_s=found.compile_s, cached=found.cached)
        self._engines.append(candidate)
        self._staged.append(candidate.stage(self._buffers))

    def _try(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        """One update by one of the two engines in turns, timed."""
        done = [len(times_s) for times_s in self._times_s]
        place = int(done[0] > done[1])
        self._last = self._engines[place]
        start_s = self._clock.monotonic_s()
        self._last.step(self._staged[place][minibatch], learning_rate=learning_rate, scalars=scalars)
        self._times_s[place].append(self._clock.monotonic_s() - start_s)
        if len(self._times_s[1]) == 2 * TRIAL_UPDATES:
            self._decide()

    def _decide(self) -> None:
        start_s, compiled_s = (statistics.median(times_s[TRIAL_UPDATES:]) for times_s in self._times_s)
        faster = int(compiled_s < start_s)
        self.mode = "torch-graph" if faster else self._start_mode
        self._remark(
            f"runs in mode {self.mode!r}: an update took {start_s * 1e6:.0f} µs in mode {self._start_mode!r}, "
            f"{compiled_s * 1e6:.0f} µs compiled"
        )
        self._engines, self._staged = [self._engines[faster]], [self._staged[faster]]


def build_auto(
    plan: UpdatePlan,
    state: UpdateState,
    *,
    build_engine: Callable[..., Any],
    clock: Clock,
    options: TorchOptions,
) -> AutoEngine:
    """Choose where to start, and start compiling when that may pay; the rule stands in the module."""
    mode, engine = _start(plan, state, build_engine=build_engine, clock=clock, options=options)
    why_not = _why_no_compiling(plan, options, mode=mode)
    if why_not:
        return AutoEngine(engine, mode=mode, remark=f"stays in mode {mode!r}: {why_not}", clock=clock)

    def load(found: Artefact) -> Engine:
        from rollstream.graph.backends.torch.artefact import load_artefact

        return load_artefact(found, plan, state, options)

    return AutoEngine(
        engine,
        mode=mode,
        remark=f"starts in mode {mode!r}; the update is compiled in the background",
        clock=clock,
        background=BackgroundBuild(plan, options, clock=clock),
        load=load,
    )


def _start(
    plan: UpdatePlan, state: UpdateState, *, build_engine: Callable[..., Any], clock: Clock, options: TorchOptions
) -> tuple[str, Engine]:
    """The mode that builds at once and is the faster of those: NumPy where it supports the loss, else torch eager."""
    if options == TorchOptions(cache=options.cache):
        try:
            return "numpy", build_engine("numpy", plan, state, clock=clock).engine
        except ConfigError:
            if importlib.util.find_spec("torch") is None:
                raise
    return "torch", build_engine("torch", plan, state, clock=clock, options=options).engine


def _why_no_compiling(plan: UpdatePlan, options: TorchOptions, *, mode: str) -> str:
    """Why nothing is compiled in the background; empty when it is."""
    if mode == "numpy" and plan.layout.size <= NUMPY_PARAMETERS_MAX:
        return f"no compiled update of at most {NUMPY_PARAMETERS_MAX:,} parameters was faster, here {plan.layout.size:,}"
    if importlib.util.find_spec("torch") is None:
        return "PyTorch, which compiles updates, is not installed"
    if options.device != "cpu":
        return f"it was measured on the CPU only; on {options.device} choose 'torch-graph' or 'torch-compile' yourself"
    if options.ranks is not None:
        return "with several ranks choose 'torch-graph' yourself, the same on all of them"
    return ""


def _call(engine: Engine, name: str) -> None:
    function = getattr(engine, name, None)
    if function is not None:
        function()
