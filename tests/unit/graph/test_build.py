"""A component alone, from spaces, in one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from gymnasium import spaces

from rollstream.errors import ConfigError, SchemaMismatch, SpaceError
from rollstream.graph import build
from rollstream.graph.backends.numpy_ops import NumpyOps
from rollstream.graph.components import Dense
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.modes.observer import Observer
from rollstream.graph.ops import Array
from rollstream.graph.scope import Parameters, Scope, api

FED = {"output": {"x": spaces.Box(-1, 1, (8,))}}


@dataclass(frozen=True)
class Total:
    """Adds up what it sees."""

    apis: ClassVar[tuple[str, ...]] = ("add",)

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x")}

    @api
    def add(self, scope: Scope, *, x: Array) -> Array:
        total = scope.state("total", (), initial=1.0) + scope.ops.sum(x)
        scope.set_state("total", total)
        return total


@pytest.mark.parametrize("mode", ["numpy", "torch"])
def test_a_part_is_built_from_a_gymnasium_space(mode: str) -> None:
    built = build(Dense(features=3), FED, mode=mode, rows=2, seed=1)
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    views = built.memory.live_views
    np.testing.assert_allclose(built("output", x=x)["output"], x @ views["weight"] + views["bias"], rtol=1e-5)


@pytest.mark.parametrize("mode", ["numpy", "torch"])
def test_state_is_remembered_from_call_to_call(mode: str) -> None:
    built = build(Total(), mode=mode, rows=2)
    assert [float(built("add", x=np.ones(2, np.float32))["output"]) for _ in range(2)] == [3.0, 5.0]
    assert built.memory.state_views["total"] == 5.0


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="Dense does not know what it is fed; give spaces"):
        build(Dense(features=3))
    with pytest.raises(ConfigError, match="Dense has no API 'act'; the spaces name act"):
        build(Dense(features=3), {"act": {}})
    with pytest.raises(SpaceError, match="x: "):
        build(Dense(features=3), {"output": {"x": spaces.Text(3)}})
    with pytest.raises(ConfigError, match="rows must be >= 1, got 0"):
        build(Dense(features=3), FED, rows=0)
    with pytest.raises(ConfigError, match="unknown mode 'fast'; known: numpy"):
        build(Dense(features=3), FED, mode="fast")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="mode 'numpy' runs on the CPU only, got device 'cuda'"):
        build(Dense(features=3), FED, device="cuda")


def test_a_wrong_call_names_what_there_is() -> None:
    built = build(Dense(features=3), FED)
    with pytest.raises(ConfigError, match="there is no API 'act'; built were output"):
        built("act")
    with pytest.raises(SchemaMismatch, match="output takes x; got nothing"):
        built("output")


def test_state_is_set_only_where_it_may_be() -> None:
    built = build(Total(), rows=2)
    with pytest.raises(ConfigError, match="Total has state but no API observe"):
        Observer(Total(), memory=built.memory, rows=2)


def test_a_loss_may_read_state_but_not_set_it() -> None:
    scope = Scope(NumpyOps(), Parameters(live={}, frozen={}, state={"total": np.zeros((), np.float32)}))
    with pytest.raises(ConfigError, match="state total cannot be set here"):
        Total().add(scope, x=np.ones(1, np.float32))
