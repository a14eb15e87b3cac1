"""Acting: a policy's `act`, `greedy` and `values` with one set of weights, in any mode that can run an API.

Which mode `auto` takes was measured (docs/decisions/0019-onnx-from-the-op-table.md): NumPy, which needs nothing in the process, unless the
policy has convolutions and ONNX Runtime is there, which is then 1.6 to 2.4 times faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
import numpy.typing as npt

from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph.declare import Component, Declared, declare
from rollstream.graph.executable import Build, Executable
from rollstream.graph.inputs import Input, fill, flat_inputs
from rollstream.graph.layout import FlatLayout
from rollstream.graph.memory import Memory
from rollstream.graph.modes.executables import MODES, Mode, executable_builder
from rollstream.graph.modes.requirements import has_onnx, require_onnx
from rollstream.spaces import Columns

__all__ = ["Acting", "ActingMode", "Packed", "build_acting"]

ActingMode: TypeAlias = Literal["auto"] | Mode
FLOAT32 = np.dtype(np.float32)
MAX_BLOCK_ROWS = 1024
"""Largest block in which `values` and `greedy` compute; more rows take several blocks."""


class Acting:
    """A policy that acts for a fixed number of environments. One thread at a time.

    Attributes:
        layout: of the weights that `load` takes.
        state_layout: of the state that `load` takes (a running normalizer's statistics).
        observed: names of the columns that `act` reads.
    """

    def __init__(self, policy: Component, *, batch: int, build: Build, declared: Declared | None = None) -> None:
        found = declared or declare(policy)
        self.layout, self.state_layout = found.layout, found.state_layout
        self.batch = batch
        self._policy = policy
        self._build = build
        self._memory = Memory(
            layout=self.layout,
            flat=np.zeros(self.layout.size, np.float32),
            state_layout=self.state_layout,
            state=self.state_layout.init(0),
        )
        self._blocks: dict[tuple[str, int], Executable] = {}
        inputs = list(flat_inputs(policy.arguments("act")))
        self._act = self._executable("act", batch)
        self._columns = {"act": [item for item in inputs if item.role == "column"]}
        self.observed = tuple(item.name for item in self._columns["act"])
        self._observed = [(item.name, self._act.inputs[item.name]) for item in self._columns["act"]]
        self._noise = {item.name: (item.noise, self._act.inputs[item.name]) for item in inputs if item.role == "noise"}
        self._draws = [(kind == "uniform", buffer) for kind, buffer in self._noise.values()]
        self._scalars = {item.name: self._act.inputs[item.name] for item in inputs if item.role == "scalar"}

    def load(self, flat: npt.NDArray[np.float32], state: npt.NDArray[np.float32] | None = None) -> None:
        """Take these weights, float32 [P], and this state [S] (None: leave it).

        Raises:
            SchemaMismatch: another number of parameters than this policy has.
            NonFiniteError: names the first tensor with a NaN or an infinity; the old weights stay.
        """
        self.layout.require_finite(flat)
        if state is not None:
            self.state_layout.require_finite(state)
            np.copyto(self._memory.state, state)
        np.copyto(self._memory.flat, flat)
        for executable in self._blocks.values():
            if isinstance(executable, Packed):
                executable.repack()

    def load_tensors(self, tensors: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take weights and state by name, as `Update.tensors` gives them; raises as `load` does."""
        state = {name: tensor for name, tensor in tensors.items() if name in set(self.state_layout.names)}
        weights = {name: tensor for name, tensor in tensors.items() if name not in state}
        self.load(self.layout.join(weights), self.state_layout.join(state))

    def act(
        self,
        observation: Columns,
        generator: np.random.Generator,
        *,
        noise: Columns | None = None,
        **scalars: float | npt.NDArray[Any],
    ) -> dict[str, npt.NDArray[Any]]:
        """Columns [N] that the policy's `act` gives, the caller's to keep: `action`, and e.g. `log_prob`, `value`.

        Args:
            observation: columns [N, ...] by name; whatever else `act` reads from rows (recurrent state) is among them.
            generator: draws the noise.
            noise: what was drawn elsewhere, by name; nothing is drawn then.
            scalars: what else `act` takes, e.g. `epsilon`: a number, or one for each environment.
        """
        if scalars.keys() != self._scalars.keys():
            raise ConfigError(f"act takes the settings {sorted(self._scalars)}, got {sorted(scalars)}")
        for name, buffer in self._observed:
            column = observation.get(name)
            if column is None:
                raise SchemaMismatch(f"act: column {name} is missing; the observation has {', '.join(sorted(observation))}")
            if column.shape == buffer.shape and column.dtype == buffer.dtype:
                buffer[...] = column
            else:
                fill(buffer, column, name=name, where="act")
        if noise is None:
            for uniform, buffer in self._draws:
                if uniform:
                    generator.random(None, FLOAT32, buffer)
                else:
                    generator.standard_normal(None, FLOAT32, buffer)
        else:
            self._given(noise)
        for name, value in scalars.items():
            self._scalars[name][...] = value
        return {name: column.copy() for name, column in self._act.run().items()}

    def _given(self, noise: Columns) -> None:
        if noise.keys() != self._noise.keys():
            raise SchemaMismatch(f"act takes the noise {sorted(self._noise)}, got {sorted(noise)}")
        for name, (_, buffer) in self._noise.items():
            fill(buffer, noise[name], name=name, where="act")

    def greedy(self, observation: Columns) -> dict[str, npt.NDArray[Any]]:
        """Columns of the best actions, for any number of rows."""
        return self._in_blocks("greedy", observation)

    def values(self, observation: Columns) -> npt.NDArray[np.float32]:
        """Estimated values, for any number of rows [M]."""
        if "values" not in self._policy.apis:
            raise ConfigError(f"{type(self._policy).__name__}.values: this policy estimates no state values")
        return self._in_blocks("values", observation)["value"]

    def _in_blocks(self, api: str, observation: Columns) -> dict[str, npt.NDArray[Any]]:
        rows = self._rows(observation, api)
        starts = range(0, max(rows, 1), MAX_BLOCK_ROWS)
        parts = [self._block(api, observation, start, min(rows - start, MAX_BLOCK_ROWS)) for start in starts]
        if len(parts) == 1:
            return parts[0]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _rows(self, observation: Columns, api: str) -> int:
        """Rows of the observation; all columns that the API reads must be there and agree."""
        wanted = self._wanted(api)
        lengths = {item.name: len(observation[item.name]) for item in wanted if item.name in observation}
        if len(lengths) < len(wanted) or len(set(lengths.values())) != 1:
            names = ", ".join(item.name for item in wanted)
            raise SchemaMismatch(f"{api} needs columns {names} with equally many rows, got {lengths}")
        return next(iter(lengths.values()))

    def _wanted(self, api: str) -> list[Input]:
        if api not in self._columns:
            self._columns[api] = [item for item in flat_inputs(self._policy.arguments(api)) if item.role == "column"]
        return self._columns[api]

    def _block(self, api: str, observation: Columns, start: int, rows: int) -> dict[str, npt.NDArray[Any]]:
        """Rows `start` to `start + rows`, in the executable of the next power of two (so few are ever made)."""
        executable = self._executable(api, 1 << max(0, rows - 1).bit_length())
        for item in self._wanted(api):
            fill(executable.inputs[item.name][:rows], observation[item.name][start : start + rows], name=item.name, where=api)
        return {name: column[:rows].copy() for name, column in executable.run().items()}

    def _executable(self, api: str, rows: int) -> Executable:
        found = self._blocks.get((api, rows))
        if found is None:
            found = self._build(self._policy, api=api, rows=rows, memory=self._memory)
            self._blocks[api, rows] = found
        return found


@runtime_checkable
class Packed(Protocol):
    """An executable that keeps parameters in a form of its own."""

    def repack(self) -> None:
        """The parameters have changed."""
        ...


def build_acting(policy: Component, *, batch: int, mode: ActingMode = "auto") -> Acting:
    """Make a policy act for `batch` environments; parameters are 0 until `load`.

    Args:
        mode: `auto` takes what is fastest, see the module; `torch` is for prints and breakpoints in a policy.

    Raises:
        ConfigError: the batch or mode makes no sense, or what the mode needs is not installed.
    """
    if batch < 1:
        raise ConfigError(f"batch must be >= 1, got {batch}")
    if mode not in ("auto", *MODES):
        raise ConfigError(f"unknown acting mode {mode!r}; known: auto, {', '.join(MODES)}")
    declared = declare(policy)
    convolves = _has_convolution(declared.layout)
    if mode == "auto":
        mode = cast(ActingMode, getattr(policy, "acting_mode", mode))  # a network of the user's needs its own framework
    if mode == "auto":
        mode = "onnx" if convolves and has_onnx() else "numpy"
    if mode == "onnx" and convolves:
        require_onnx(mode)
        from rollstream.graph.backends.onnx.executable import PackedOnnxExecutable

        return Acting(policy, batch=batch, build=PackedOnnxExecutable, declared=declared)
    return Acting(policy, batch=batch, build=executable_builder(mode), declared=declared)


def _has_convolution(layout: FlatLayout) -> bool:
    """Whether a parameter is a convolution's kernel: nothing else has four axes."""
    return any(len(parameter.shape) == 4 for parameter in layout.parameters)
