"""The whole update as one XLA program; and a whole epoch, with its loop over minibatches inside, as another.

    arrays of the state, settings, columns --> [forward, backward, clip, optimizer, metrics] x minibatches --> new arrays, copied back

The arrays of the `UpdateState` are the truth: they go in and come out at every call, so loading a state, moving the target
network and observing need no hook. That costs a few microseconds per call for small networks, and once per epoch only.
Nothing is donated: NumPy memory cannot be, and inside the loop XLA reuses its buffers anyway.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import lax

from rollstream.clock import Clock
from rollstream.graph.backends.jax.ops import JaxOps
from rollstream.graph.backends.jax.program import Program, compile_program, split
from rollstream.graph.inputs import bind, flat_inputs
from rollstream.graph.optimizers.clipping import clip_scale
from rollstream.graph.report import Compiled
from rollstream.graph.scope import Parameters, Scope
from rollstream.graph.update_plan import UpdatePlan, UpdateState

__all__ = ["JaxEngine"]

LEARNING_RATE = "learning_rate"


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["parameters", "slots", "sums", "applied", "rows"], meta_fields=[]
)
@dataclass(frozen=True, slots=True, kw_only=True)
class _Moving:
    """What changes from update to update, as in `UpdateState`; `sums` and `applied` since the program was called."""

    parameters: Any
    slots: Any
    sums: Any
    applied: Any
    rows: tuple[Any, ...]


class JaxEngine:
    """See `rollstream.graph.update_plan.Engine`; it also runs epochs. Compiles when it is made, and when `stage` is given more
    minibatches than before; never in between.

    Attributes:
        report: what the program of one update took.
        recompiles: how often an epoch had more minibatches than any before, after the first.
    """

    def __init__(self, plan: UpdatePlan, state: UpdateState, *, clock: Clock) -> None:
        self._plan = plan
        self._state = state
        self._clock = clock
        inputs = list(flat_inputs(plan.arguments))
        self._columns = [item for item in inputs if item.role == "column"]
        self._settings = [LEARNING_RATE, *(item.name for item in inputs if item.role == "scalar")]
        self._values = np.zeros(len(self._settings), np.float32)
        arrays: dict[str, npt.NDArray[Any]] = {
            "parameters": state.parameters,
            "slots": state.slots,
            "count": state.count,
            "state": state.state,
            "target": state.target,
            "values": self._values,
        }
        self._empty = {name: array for name, array in arrays.items() if not array.size}
        self._names = tuple(name for name in arrays if name not in self._empty)
        self._shared = tuple(arrays[name] for name in self._names)  # each array that goes in costs 3 µs
        self._row_shapes: Mapping[str, Any] = {}
        self._rows: Sequence[Any] = ()
        self._buffers: tuple[npt.NDArray[Any], ...] = ()
        self._loop: Program | None = None
        self.recompiles = 0
        examples = [np.zeros(item.full_shape(plan.batch_rows), item.dtype) for item in self._columns]
        self._one = self._compile(self._update_once, examples)
        self.report: Compiled = self._one.report

    def stage(self, buffers: Mapping[str, npt.NDArray[Any]]) -> Sequence[tuple[npt.NDArray[Any], ...]]:
        size = self._plan.batch_rows
        self._buffers = tuple(buffers[item.name] for item in self._columns)
        count = len(self._buffers[0]) // size
        if count > 1:
            self.recompiles += self._loop is not None
            self._loop = self._compile(self._update_each, [np.zeros((), np.int64), *self._buffers])
        return [tuple(buffer[place * size : (place + 1) * size] for buffer in self._buffers) for place in range(count)]

    def step(self, minibatch: Any, *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        self._set(learning_rate, scalars)
        self._take(self._one(*self._shared, *minibatch), updates=1)

    def epoch(self, minibatches: Sequence[Any], *, learning_rate: float, scalars: Mapping[str, float]) -> None:
        """`step` of each; the minibatches are the first ones of those staged last, in order."""
        count = len(minibatches)
        if count == 1 or self._loop is None:
            self.step(minibatches[0], learning_rate=learning_rate, scalars=scalars)
            return
        self._set(learning_rate, scalars)
        self._take(self._loop(*self._shared, np.asarray(count), *self._buffers), updates=count)

    def rows(self) -> Mapping[str, npt.NDArray[Any]]:
        return {name: np.asarray(column) for name, column in zip(self._row_shapes, self._rows, strict=True)}

    def _set(self, learning_rate: float, scalars: Mapping[str, float]) -> None:
        self._values[0] = learning_rate
        for place, name in enumerate(self._settings[1:], start=1):
            self._values[place] = scalars[name]

    def _take(self, found: Sequence[Any], *, updates: int) -> None:
        """Write what moved into the arrays of the state; `found` is made by `_given`."""
        state, numbers = self._state, np.asarray(found[0])
        size, slots = state.parameters.size, state.slots.size
        applied = int(numbers[-1])
        state.parameters[:] = numbers[:size]
        state.slots.reshape(-1)[:] = numbers[size : size + slots]
        np.add(state.sums, numbers[size + slots : -1], out=state.sums)
        np.add(state.count, applied, out=state.count)
        np.add(state.tally, (applied, updates - applied), out=state.tally)
        self._rows = found[1:]

    def _compile(self, function: Any, examples: Sequence[npt.NDArray[Any]]) -> Program:
        what = f"{type(self._plan.loss).__name__}.loss"
        return compile_program(function, [*self._shared, *examples], what=what, clock=self._clock)

    def _update_once(self, *arguments: Any) -> tuple[Any, ...]:
        shared, columns = self._named(arguments)
        return _given(self._update(self._start(shared, rows=()), shared, columns))

    def _update_each(self, *arguments: Any) -> tuple[Any, ...]:
        """One update with each of the first `count` minibatches of the buffers."""
        shared, (count, *buffers) = self._named(arguments)
        size = self._plan.batch_rows

        def update(place: Any, moving: _Moving) -> _Moving:
            return self._update(moving, shared, [lax.dynamic_slice_in_dim(buffer, place * size, size) for buffer in buffers])

        rows = tuple(jnp.zeros(shape, dtype) for shape, dtype in self._row_shapes.values())
        return _given(lax.fori_loop(0, count, update, self._start(shared, rows=rows)))

    def _named(self, arguments: Sequence[Any]) -> tuple[dict[str, Any], Sequence[Any]]:
        """What each update shares, by name, and the arguments after it."""
        shared = {**self._empty, **dict(zip(self._names, arguments, strict=False))}
        return shared, arguments[len(self._names) :]

    def _start(self, shared: Mapping[str, Any], *, rows: tuple[Any, ...]) -> _Moving:
        return _Moving(
            parameters=shared["parameters"],
            slots=shared["slots"],
            sums=jnp.zeros(len(self._plan.metric_names), jnp.float32),
            applied=jnp.zeros((), jnp.int64),
            rows=rows,
        )

    def _update(self, moving: _Moving, shared: Mapping[str, Any], columns: Sequence[Any]) -> _Moving:
        """The update as a pure function, traced."""
        plan, ops = self._plan, JaxOps()
        settings = {name: shared["values"][place] for place, name in enumerate(self._settings)}
        live = split(plan.layout, moving.parameters)
        fixed = Parameters(
            live=live,
            frozen=live,
            target=split(plan.layout, shared["target"]) if plan.uses_target else None,
            state=split(plan.state_layout, shared["state"]),
        )
        named = {item.name: column for item, column in zip(self._columns, columns, strict=True)}
        arguments = bind(plan.arguments, {**named, **settings})

        def objective(learned: Mapping[str, Any]) -> tuple[Any, tuple[Any, tuple[Any, ...]]]:
            parameters = Parameters(live=learned, frozen=fixed.frozen, target=fixed.target, state=fixed.state)
            result = plan.loss.loss(Scope(ops, parameters), **arguments)
            self._row_shapes = {name: (row.shape, row.dtype) for name, row in result.rows.items()}
            return result.loss, (result.metrics, tuple(result.rows.values()))

        (loss, (metrics, rows)), slopes = jax.value_and_grad(objective, has_aux=True)(live)
        gradient = jnp.concatenate([jnp.ravel(slopes[name]) for name in plan.layout.names])
        norm = jnp.sqrt(jnp.sum(gradient * gradient))
        finite = jnp.isfinite(norm) & jnp.isfinite(loss)
        if plan.max_grad_norm is not None:
            gradient = gradient * clip_scale(ops, norm, max_norm=plan.max_grad_norm)
        rate = settings[LEARNING_RATE]
        if plan.rate_scale is not None:
            rate = rate * jnp.asarray(plan.rate_scale)
        number = (shared["count"][0] + moving.applied + 1).astype(jnp.float32)
        slots = tuple(moving.slots[place] for place in range(len(plan.optimizer.slots)))
        after = plan.optimizer.step(ops, moving.parameters, slots, gradient, count=number, learning_rate=rate)
        sums = jnp.concatenate([metrics, jnp.stack([loss, norm])])
        return _Moving(
            parameters=jnp.where(finite, after.parameters, moving.parameters),
            slots=jnp.where(finite, jnp.stack(after.slots), moving.slots) if after.slots else moving.slots,
            sums=moving.sums + jnp.where(finite, sums, 0.0),
            applied=moving.applied + finite,
            rows=rows,
        )


def _given(moved: _Moving) -> tuple[Any, ...]:
    """What moved as one array, because each array that leaves XLA costs 10 µs; then the rows, which few ask for."""
    numbers = [moved.parameters, jnp.ravel(moved.slots), moved.sums, moved.applied.astype(jnp.float32)[None]]
    return (jnp.concatenate(numbers), *moved.rows)
