"""A user's own nn.Module as a component."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from gymnasium.spaces import Box

from rollstream.errors import ConfigError
from rollstream.graph import build, build_update, declare
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses import LossResult
from rollstream.graph.scope import Scope, api
from rollstream.graph.torch_module import TorchModule

X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)


def _net() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))


@dataclass(frozen=True)
class Regression:
    """Mean squared error of a network; it is policy and loss in one."""

    net: TorchModule
    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ("error",)

    @property
    def policy(self) -> Regression:
        return self

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(3,)), "y": Input(name="y", shape=(2,))}

    @api
    def loss(self, scope: Scope, *, x: Any, y: Any) -> LossResult:
        difference = self.net.output(scope.child("net"), x) - y
        error = scope.ops.mean(difference * difference)
        return LossResult(loss=error, metrics=scope.ops.stack([scope.ops.stop_gradient(error)]), rows={})


@dataclass(frozen=True)
class Alone:
    """The network by itself."""

    net: TorchModule
    apis: ClassVar[tuple[str, ...]] = ("output",)

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(3,))}

    @api
    def output(self, scope: Scope, *, x: Any) -> Mapping[str, Any]:
        return {"y": self.net.output(scope.child("net"), x)}


@pytest.mark.parametrize("mode", ["torch", "torch-graph", "torch-compile"])
def test_it_starts_as_the_module_is_and_gives_what_it_gives(mode: Any) -> None:
    net = _net()
    built = build(Alone(TorchModule(net)), mode=mode, rows=5)
    assert built.memory.layout.names == ("net.0.weight", "net.0.bias", "net.3.weight", "net.3.bias")
    with torch.no_grad():
        expected = net.eval()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(built("output", x=X)["y"], expected, atol=1e-6)
    built.memory.flat[:] = 0.0
    np.testing.assert_array_equal(built("output", x=X)["y"], np.zeros((5, 2)))


@pytest.mark.parametrize("mode", ["torch", "torch-graph"])
def test_it_learns_as_under_torch_optim(mode: Any) -> None:
    net, batch = _net().eval(), {"x": X, "y": X[:, :2].copy()}
    update = build_update(Regression(TorchModule(net)), batch_rows=5, seed=0, mode=mode, max_grad_norm=None)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2, eps=1e-5)
    for _ in range(3):
        update.update(batch, learning_rate=1e-2)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(torch.from_numpy(X)), torch.from_numpy(batch["y"])).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    tensors = update.tensors()
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(tensors[f"net.{name}"], parameter.detach().numpy(), atol=1e-6)


def test_mixed_precision_reaches_into_the_module() -> None:
    batch = {"x": X, "y": X[:, :2].copy()}
    plain, mixed = (
        build_update(Regression(TorchModule(_net())), batch_rows=5, seed=0, mixed_precision=mixed) for mixed in (False, True)
    )
    one, other = (update.update(batch, learning_rate=0.0).metrics["loss"] for update in (plain, mixed))
    assert one != other and one == pytest.approx(other, rel=0.05)


def test_other_modes_refuse_it_with_its_path_and_what_to_use_instead() -> None:
    with pytest.raises(ConfigError, match="net: TorchModule.output: a torch.nn.Module needs one of the modes torch, torch-graph"):
        build(Alone(TorchModule(_net())), mode="numpy", rows=5)


def test_a_module_with_running_statistics_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"TorchModule: 1 \(BatchNorm1d\) keeps running statistics, which nothing would update"):
        TorchModule(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8)))


def test_the_shape_pass_leaves_the_users_module_alone() -> None:
    net = _net().train()
    before = {name: parameter.clone() for name, parameter in net.named_parameters()}
    declare(Alone(TorchModule(net)))
    assert net.training
    assert all(torch.equal(before[name], parameter) for name, parameter in net.named_parameters())


def test_a_space_feeds_it_by_name() -> None:
    net = _net()
    built = build(TorchModule(net), {"output": {"x": Box(-1, 1, (3,))}}, mode="torch", rows=5)
    with torch.no_grad():
        expected = net.eval()(torch.from_numpy(X)).numpy()
    np.testing.assert_allclose(built("output", x=X)["output"], expected, rtol=1e-5)
