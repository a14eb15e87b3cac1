"""Updating: a loss, a flat parameter vector and an optimizer as one object that takes NumPy columns.

Which framework runs is the mode's business; the state is the same in all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rollstream.clock import Clock, SystemClock
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph.declare import declare
from rollstream.graph.inputs import flat_inputs
from rollstream.graph.layout import FlatLayout
from rollstream.graph.losses.loss import Loss
from rollstream.graph.minibatches import Minibatches
from rollstream.graph.modes.auto import AutoEngine
from rollstream.graph.modes.engines import UpdateMode, build_engine
from rollstream.graph.modes.observer import Observer
from rollstream.graph.optimizers import Adam, Optimizer, rate_scale
from rollstream.graph.report import BuildReport
from rollstream.graph.torch_options import Ranks, TorchOptions
from rollstream.graph.update_plan import Engine, EpochEngine, KeepsState, SplitEngine, UpdatePlan, UpdateState
from rollstream.spaces import Columns

__all__ = ["Gradient", "Update", "UpdateMode", "UpdateResult", "build_update"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateResult:
    """Outcome of one update.

    Attributes:
        metrics: as of `Update.update_many`.
        outputs: columns [B] that the loss gives back for each row, e.g. `td_error`; the caller's to keep.
    """

    metrics: dict[str, float]
    outputs: dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gradient:
    """A gradient that is not applied yet.

    Attributes:
        vector: float32 [P], not clipped; the caller's to keep.
        rows: that it is the mean over.
        metrics: the loss's, `loss` and `gradient_norm`; not finite where the gradient is not.
    """

    vector: npt.NDArray[np.float32]
    rows: int
    metrics: dict[str, float]

    @property
    def is_finite(self) -> bool:
        """Whether it can be applied."""
        return math.isfinite(self.metrics["gradient_norm"] + self.metrics["loss"])


class Update:
    """Forward, backward, clip and optimizer step on one flat vector. One thread at a time; made by `build_update`.

    Attributes:
        layout: of the flat vector.
    """

    def __init__(self, plan: UpdatePlan, state: UpdateState, engine: Engine, report: BuildReport) -> None:
        self.layout: FlatLayout = plan.layout
        self._report = report
        self._plan = plan
        self._state = state
        self._engine = engine
        self._keeper = engine if isinstance(engine, KeepsState) else None
        inputs = list(flat_inputs(plan.arguments))
        self._scalars = frozenset(item.name for item in inputs if item.role == "scalar")
        self._batches = Minibatches(inputs, batch_rows=plan.batch_rows)
        self._observer: Observer | None = None
        self._staged: Sequence[Any] = ()
        self._reserve(plan.batch_rows)

    @property
    def updates(self) -> int:
        """Updates applied so far."""
        self._pull()
        return int(self._state.count[0])

    @property
    def mode(self) -> str:
        """How updates run now; with `auto` it may change once."""
        return self._engine.mode if isinstance(self._engine, AutoEngine) else self._report.mode

    @property
    def recompiles(self) -> int:
        """How often something was compiled again after it was built: 0, unless something is wrong."""
        return int(getattr(self._engine, "recompiles", 0))

    @property
    def report(self) -> BuildReport:
        """What was built, how long it took, and what `auto` decided so far."""
        engine = self._engine
        if not isinstance(engine, AutoEngine):
            return self._report
        return replace(self._report, mode=f"auto ({engine.mode})", graph=engine.compiled, remarks=engine.remarks)

    def update(self, batch: Columns, *, learning_rate: float, **scalars: float) -> UpdateResult:
        """One update with exactly `batch_rows` rows.

        Args:
            batch: at least the columns that the loss reads; a missing `weight` is 1.
            scalars: the loss's settings, e.g. `clip_ratio`.
        """
        self._check(learning_rate, scalars)
        self._batches.fill(batch)
        self._engine.step(self._staged[0], learning_rate=learning_rate, scalars=scalars)
        outputs = {name: column.copy() for name, column in self._engine.rows().items()}
        return UpdateResult(metrics=self._metrics(), outputs=outputs)

    def update_many(
        self,
        columns: Columns,
        *,
        epochs: int,
        generator: np.random.Generator,
        learning_rate: float,
        batch_rows: int | None = None,
        **scalars: float,
    ) -> dict[str, float]:
        """`epochs` times over all rows, shuffled anew each time, in minibatches of `batch_rows`.

        Args:
            columns: [M, ...], any M; at least the columns that the loss reads; a missing `weight` is 1.
            batch_rows: only to say again what the update was built for.

        Returns:
            The loss's metrics, `loss` and `gradient_norm` as means over the updates applied (left out when there were
            none), `updates` (applied) and `skipped_updates` (loss or gradient not finite: parameters and moments
            unchanged).
        """
        self._check(learning_rate, scalars)
        if batch_rows not in (None, self._plan.batch_rows):
            raise ConfigError(f"batch_rows is {batch_rows}, but this update was built for {self._plan.batch_rows}; build another")
        rows = len(next(iter(columns.values()))) if columns else 0
        count = self._batches.count(rows)
        self._reserve(rows)
        staged = self._staged[:count]
        for _ in range(epochs):
            self._batches.shuffle(columns, rows=rows, generator=generator)
            self._epoch(staged, learning_rate=learning_rate, scalars=scalars)
        return self._metrics()

    def gradient(self, columns: Columns, **scalars: float) -> Gradient:
        """The gradient of these rows by the parameters as they are, for `apply` here or elsewhere; nothing changes.

        Args:
            columns: [M, ...], M from 1 to `batch_rows`; a missing `weight` is 1.

        Raises:
            ConfigError: this mode cannot compute a gradient without applying it.
        """
        engine = self._halves()
        self._check(0.0, scalars)
        self._batches.pad(columns, where="gradient")
        found = engine.gradient(self._staged[0], scalars=scalars)
        metrics = dict(zip(self._plan.metric_names, found.figures.tolist(), strict=True))
        return Gradient(vector=found.vector, rows=len(next(iter(columns.values()))), metrics=metrics)

    def apply(self, gradient: npt.NDArray[np.float32], *, learning_rate: float) -> dict[str, float]:
        """One optimizer step with `gradient` [P], clipped as in `update`.

        Returns:
            `gradient_norm` (left out when it is not finite: then nothing changes), `updates` and `skipped_updates`.

        Raises:
            ConfigError: this mode cannot apply a gradient that it did not compute.
            SchemaMismatch: the gradient is of another policy.
        """
        engine = self._halves()
        self._check(learning_rate, None)
        if gradient.shape != (self.layout.size,):
            raise SchemaMismatch(
                f"a gradient of shape {list(gradient.shape)} does not fit a policy of {self.layout.size} parameters; "
                "use the same settings on all sides"
            )
        engine.apply(gradient, learning_rate=learning_rate)
        told = self._metrics()
        return {name: told[name] for name in ("gradient_norm", "updates", "skipped_updates") if name in told}

    def load_parameters(self, flat: npt.NDArray[np.float32]) -> None:
        """Take these parameters, float32 [P]; the optimizer's moments stay. Raises what `FlatLayout.require_finite` does."""
        self.layout.require_finite(flat)
        self._pull()
        np.copyto(self._state.parameters, flat)
        self._push()

    def _halves(self) -> SplitEngine:
        if not isinstance(self._engine, SplitEngine):
            raise ConfigError(
                f"an update in mode {self._report.mode!r} computes and applies gradients in one program; "
                "to do one without the other build it with mode='numpy' or mode='torch'"
            )
        return self._engine

    def _epoch(self, staged: Sequence[Any], *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        if isinstance(self._engine, EpochEngine):
            self._engine.epoch(staged, learning_rate=learning_rate, scalars=scalars)
            return
        for minibatch in staged:
            self._engine.step(minibatch, learning_rate=learning_rate, scalars=scalars)

    def parameters(self) -> npt.NDArray[np.float32]:
        """The flat vector, float32 [P]; a copy."""
        self._pull()
        return self._state.parameters.copy()

    def tensors(self) -> dict[str, npt.NDArray[np.float32]]:
        """Parameters and the policy's state by name, as copies: what actors need (`Acting.load_tensors`)."""
        self._pull()
        views = {**self._plan.layout.split(self._state.parameters), **self._plan.state_layout.split(self._state.state)}
        return {name: view.copy() for name, view in views.items()}

    def observe(self, columns: Columns) -> None:
        """Let the policy's API `observe` see these rows, [M, ...], each once: it updates its state (running statistics).

        Nothing happens when the policy remembers nothing.
        """
        if not self._plan.state_layout.size:
            return
        if self._observer is None:
            self._observer = Observer(self._plan.loss.policy, memory=self._state.memory(self._plan), rows=self._plan.batch_rows)
        self._pull()
        self._observer.observe(columns)
        self._push()

    def sync_target(self, *, share: float = 1.0) -> None:
        """Move the target network by `share` of the way to the parameters; 1 copies them (Polyak averaging: e.g. 0.005)."""
        if not 0.0 < share <= 1.0:
            raise ConfigError(f"share of a target sync must lie in (0, 1], got {share}")
        if not self._plan.uses_target:
            raise ConfigError(f"{type(self._plan.loss).__name__} has no target network to synchronize")
        self._pull()
        if share == 1.0:
            np.copyto(self._state.target, self._state.parameters)
        else:
            np.add(self._state.target, np.float32(share) * (self._state.parameters - self._state.target), out=self._state.target)
        self._push()

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Everything that the next update depends on, as copies; the same in every mode."""
        self._pull()
        return {name: array.copy() for name, array in self._stored().items()}

    def load_state(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from `state()` of an update of the same policy, in whichever mode.

        Raises:
            SchemaMismatch: an array is missing or has another shape; nothing is changed then.
        """
        stored = self._stored()
        for name, array in stored.items():
            given = state.get(name)
            if given is None or given.shape != array.shape:
                have = "nothing" if given is None else f"shape {list(given.shape)}"
                raise SchemaMismatch(
                    f"update state {name}: needs shape {list(array.shape)}, got {have}; it is of another policy or "
                    "optimizer: continue with the settings that it was saved with, or start anew"
                )
        self.layout.require_finite(state["parameters"])
        for name, array in stored.items():
            np.copyto(array, state[name])
        self._push()

    def _stored(self) -> dict[str, npt.NDArray[Any]]:
        state = self._state
        stored: dict[str, npt.NDArray[Any]] = {
            "parameters": state.parameters,
            **dict(zip(self._plan.optimizer.slots, state.slots, strict=True)),
            "count": state.count,
        }
        if self._plan.state_layout.size:
            stored["state"] = state.state
        return {**stored, "target": state.target} if self._plan.uses_target else stored

    def _check(self, learning_rate: float, scalars: Mapping[str, float] | None) -> None:
        if scalars is not None and scalars.keys() != self._scalars:
            raise ConfigError(f"this update takes the settings {sorted(self._scalars)}, got {sorted(scalars)}")
        if not (math.isfinite(learning_rate) and learning_rate >= 0.0):
            raise ConfigError(f"learning_rate must be finite and >= 0, got {learning_rate}")

    def _reserve(self, rows: int) -> None:
        if self._batches.reserve(rows):
            self._staged = self._engine.stage(self._batches.buffers)

    def _metrics(self) -> dict[str, float]:
        """Read the sums and clear them."""
        self._pull()
        sums, (applied, skipped) = self._state.sums, self._state.tally.tolist()
        metrics: dict[str, float] = {}
        if applied:
            metrics = dict(zip(self._plan.metric_names, (sums / applied).tolist(), strict=True))
        metrics["updates"] = float(applied)
        metrics["skipped_updates"] = float(skipped)
        sums[...] = 0
        self._state.tally[...] = 0
        self._push()
        return metrics

    def _pull(self) -> None:
        """Before the arrays of the state are read."""
        if self._keeper is not None:
            self._keeper.pull()

    def _push(self) -> None:
        """After they were written."""
        if self._keeper is not None:
            self._keeper.push()


def build_update(
    loss: Loss,
    *,
    batch_rows: int,
    optimizer: Optimizer | None = None,
    max_grad_norm: float | None = 0.5,
    mode: UpdateMode = "torch",
    seed: int | None = None,
    parameters: npt.NDArray[np.float32] | None = None,
    groups: Mapping[str, float] | None = None,
    device: str = "cpu",
    mixed_precision: bool = False,
    accumulate: int = 1,
    ranks: Ranks | None = None,
    cache: Path | None = None,
    clock: Clock | None = None,
) -> Update:
    """Build the whole update of `loss`.

    Args:
        batch_rows: rows of one minibatch; static.
        max_grad_norm: scale gradients of a larger global norm down to it; None: never.
        mode: `auto` starts at once and changes over to a compiled update when it is ready and faster (see `modes.auto`); `torch` can
            be debugged with prints and breakpoints; `torch-graph` and `torch-compile` take seconds to compile; `numpy` needs no
            torch. The state of one continues that of another (`load_state`).
        seed: of the first parameters; or give `parameters` themselves.
        groups: factors of the learning rate by pattern of parameter names, see `optimizers.rate_scale`.
        device: of the torch modes: `cpu`, `cuda`, `cuda:1`, ...
        mixed_precision: matrix products and convolutions in bfloat16 (torch modes).
        accumulate: compute each minibatch in so many equal parts (torch modes): a fraction of the memory, the same gradient.
        ranks: processes that share this update (torch modes), see `backends.torch.parallel`.
        cache: folder of compiled updates (mode `auto`), see `modes.background.cache_directory`.

    Raises:
        ConfigError: the mode cannot be built here; says what to use instead.
    """
    if batch_rows < 1:
        raise ConfigError(f"batch_rows must be >= 1, got {batch_rows}")
    if max_grad_norm is not None and not max_grad_norm > 0:
        raise ConfigError(f"max_grad_norm must be > 0, got {max_grad_norm}; for no clipping use None")
    declared, of_loss = declare(loss.policy, clock=clock), declare(loss, clock=clock)
    _require_same_parameters(declared.layout, of_loss.layout)
    plan = UpdatePlan(
        loss=loss,
        layout=declared.layout,
        batch_rows=batch_rows,
        optimizer=optimizer or Adam(),
        max_grad_norm=max_grad_norm,
        uses_target=of_loss.uses_target,
        state_layout=declared.state_layout,
        rate_scale=rate_scale(declared.layout, groups) if groups else None,
    )
    options = TorchOptions(device=device, mixed_precision=mixed_precision, accumulate=accumulate, ranks=ranks, cache=cache)
    if parameters is None:
        if seed is None:
            raise ConfigError("build_update needs a seed for the first parameters, or the parameters")
        parameters = plan.layout.init(seed)
    plan.layout.require_finite(parameters)
    state = UpdateState.start(plan, parameters)
    built = build_engine(mode, plan, state, clock=clock or SystemClock(), options=options)
    report = BuildReport.of(of_loss, mode=mode)
    return Update(plan, state, built.engine, report if built.compiled is None else report.compiled(built.compiled))


def _require_same_parameters(policy: FlatLayout, loss: FlatLayout) -> None:
    extra = sorted(set(loss.names) - set(policy.names))
    if extra:
        raise ConfigError(f"the loss declares parameters that its policy lacks: {', '.join(extra)}; give both the same scope")
