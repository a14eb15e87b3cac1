"""Which engine runs updates in which mode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from rollstream.allocator import keep_freed_memory
from rollstream.clock import Clock
from rollstream.errors import ConfigError
from rollstream.graph.backends.numpy_update import NumpyEngine
from rollstream.graph.modes.auto import build_auto
from rollstream.graph.modes.requirements import require_jax, require_torch
from rollstream.graph.report import Compiled
from rollstream.graph.torch_options import TorchOptions
from rollstream.graph.update_plan import Engine, UpdatePlan, UpdateState

__all__ = ["BuiltEngine", "UpdateMode", "build_engine"]

UpdateMode = Literal["auto", "numpy", "torch", "torch-graph", "torch-compile", "jax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltEngine:
    """An engine, and what a static mode took to make it."""

    engine: Engine
    compiled: Compiled | None = None


def build_engine(
    mode: UpdateMode, plan: UpdatePlan, state: UpdateState, *, clock: Clock, options: TorchOptions | None = None
) -> BuiltEngine:
    """The engine that runs `plan` on `state` in `mode`.

    Raises:
        ConfigError: the mode is unknown or cannot be built here; says what to use instead.
    """
    options = options or TorchOptions()
    options.require_fitting(batch_rows=plan.batch_rows)
    if mode == "auto":
        return BuiltEngine(engine=build_auto(plan, state, build_engine=build_engine, clock=clock, options=options))
    if mode in ("torch", "torch-graph", "torch-compile"):
        require_torch(mode)
        from rollstream.graph.backends.torch.tensors import require_device

        require_device(options.device)
        keep_freed_memory()
        if options.ranks is not None:
            options.ranks.require_equal(state.parameters)
        if mode == "torch":
            from rollstream.graph.backends.torch.eager_update import EagerEngine

            return BuiltEngine(engine=EagerEngine(plan, state, options=options))
        from rollstream.graph.backends.torch.static_update import StaticEngine

        static = StaticEngine(plan, state, mode=mode, options=options, clock=clock)
        return BuiltEngine(engine=static, compiled=static.report)
    options.require_none(mode)
    if mode == "numpy":
        return BuiltEngine(engine=NumpyEngine(plan, state))
    if mode == "jax":
        require_jax(mode)
        from rollstream.graph.backends.jax.engine import JaxEngine

        by_jax = JaxEngine(plan, state, clock=clock)
        return BuiltEngine(engine=by_jax, compiled=by_jax.report)
    raise ConfigError(f"unknown update mode {mode!r}; known: {', '.join(get_args(UpdateMode))}")
