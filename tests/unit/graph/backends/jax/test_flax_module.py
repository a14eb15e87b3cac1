"""Networks of Flax as components: parameters by their paths, results as Flax gives them, updates as optax makes them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")

import jax
import jax.numpy as jnp
from flax import linen, nnx, traverse_util

from rollstream.errors import ConfigError
from rollstream.graph import Adam, build, build_update
from rollstream.graph.backends.jax import FlaxModule
from rollstream.graph.inputs import Arguments, Input
from rollstream.graph.losses.loss import LossResult
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope, api

SPACES = {"output": {"x": Input(name="x", shape=(4,))}}
X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


class Network(linen.Module):
    """A bit of everything that makes arrays of its own."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        hidden = linen.LayerNorm()(linen.tanh(linen.Dense(8)(x)))
        cell, carry = linen.GRUCell(features=6), jnp.zeros((x.shape[0], 6))
        for _ in range(2):
            carry, _ = cell(carry, hidden)
        return linen.Dense(3, name="head")(carry) * jnp.arange(3)


class Pair(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(4, 3, rngs=rngs)
        self.others = nnx.List([nnx.Linear(3, 2, rngs=rngs)])

    def __call__(self, x: Any) -> Any:
        return self.others[0](jnp.tanh(self.first(x)))


def _tree(views: Any) -> Any:
    return traverse_util.unflatten_dict({tuple(name.split(".")): np.array(view) for name, view in views.items()})


def test_a_linen_module_gives_what_flax_gives() -> None:
    built = build(FlaxModule(Network()), SPACES, mode="jax", rows=5)
    output = built("output", x=X)["output"]
    assert output.dtype == np.float32
    assert {"Dense_0.kernel", "GRUCell_0.hn.kernel", "LayerNorm_0.scale", "head.bias"} <= set(built.memory.layout.names)
    np.testing.assert_allclose(output, Network().apply({"params": _tree(built.memory.live_views)}, X), atol=1e-6)


def test_parameters_start_as_the_module_starts_them_and_depend_on_the_seed() -> None:
    one, same, other = (build(FlaxModule(linen.Dense(100)), SPACES, mode="jax", seed=seed).memory for seed in (1, 1, 2))
    assert not one.live_views["bias"].any()
    assert one.live_views["kernel"].std() == pytest.approx(0.5, rel=0.1)  # LeCun's: 1 / sqrt(4 inputs)
    assert np.array_equal(one.flat, same.flat)
    assert not np.array_equal(one.flat, other.flat)


def test_a_module_of_nnx_starts_from_the_values_it_has() -> None:
    module = Pair(nnx.Rngs(0))
    built = build(FlaxModule(module), SPACES, mode="jax", rows=5)
    assert built.memory.layout.names == ("first.bias", "first.kernel", "others.0.bias", "others.0.kernel")
    np.testing.assert_allclose(built("output", x=X)["output"], module(X), atol=1e-6)
    built.memory.flat[:] = 0.0
    assert not built("output", x=X)["output"].any()
    assert np.asarray(module(X)).any()


def test_integers_go_in_and_come_out_whole() -> None:
    class Best(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return jnp.argmax(linen.Embed(10, 3)(x), axis=-1)

    spaces = {"output": {"x": Input(name="x", dtype="<i8", low=0, high=10)}}
    built = build(FlaxModule(Best()), spaces, mode="jax", rows=4)
    output = built("output", x=np.array([0, 1, 1, 9]))["output"]
    assert output.dtype == np.int64
    assert output.tolist() == built.memory.live_views["Embed_0.embedding"][[0, 1, 1, 9]].argmax(-1).tolist()


@dataclass(frozen=True)
class Fit:
    """Squared error of a network; its own policy."""

    module: FlaxModule

    apis: ClassVar[tuple[str, ...]] = ("loss",)
    metric_names: ClassVar[tuple[str, ...]] = ()

    @property
    def policy(self) -> Fit:
        return self

    def arguments(self, api: str) -> Arguments:
        return {"x": Input(name="x", shape=(4,)), "y": Input(name="y", shape=(2,))}

    @api
    def loss(self, scope: Scope, *, x: Array, y: Array) -> LossResult:
        error = self.module.output(scope.child("network"), x) - y
        return LossResult(loss=scope.ops.sum(error * error), metrics=error[0, :0], rows={})


def test_updates_are_those_of_optax() -> None:
    optax = pytest.importorskip("optax")
    module, y = Pair(nnx.Rngs(1)), np.random.default_rng(1).standard_normal((5, 2)).astype(np.float32)
    update = build_update(
        Fit(FlaxModule(module)), batch_rows=5, optimizer=Adam(epsilon=1e-5), max_grad_norm=1.0, mode="jax", seed=0
    )
    definition, parameters = nnx.split(module)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(0.01, eps=1e-5))
    slots = optimizer.init(parameters)
    for _ in range(10):
        slopes = jax.grad(lambda now: jnp.sum((nnx.merge(definition, now)(X) - y) ** 2))(parameters)
        moves, slots = optimizer.update(slopes, slots, parameters)
        parameters = optax.apply_updates(parameters, moves)
        update.update({"x": X, "y": y}, learning_rate=0.01)
    expected = nnx.merge(definition, parameters)
    np.testing.assert_allclose(update.tensors()["network.first.kernel"], expected.first.kernel[...], atol=1e-5)
    np.testing.assert_allclose(update.tensors()["network.others.0.bias"], expected.others[0].bias[...], atol=1e-5)
    assert update.updates == 10


def test_other_modes_say_what_to_use_instead() -> None:
    refused = (
        r"\(root\): FlaxModule.output: the Flax module Dense runs in mode 'jax' only; use mode 'jax', "
        "or the components Mlp and Cnn in its place"
    )
    with pytest.raises(ConfigError, match=refused):
        build(FlaxModule(linen.Dense(2)), SPACES, mode="numpy")


class Remembering(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.drop(x)


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (linen.BatchNorm(use_running_average=True), "it keeps batch_stats besides parameters; use layers without state"),
        (Remembering(nnx.Rngs(0)), "it keeps drop.rngs.* besides parameters; use layers without state"),
        (linen.Dropout(0.5, deterministic=False), "needs PRNG"),
        (linen.Conv(3, (3, 3)), ""),
    ],
)
def test_a_module_that_does_not_run_is_named_with_the_reason(module: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=rf"the Flax module \w+ does not run on float32 \[2, 4\]: .*{reason}"):
        build(FlaxModule(module), SPACES, mode="jax")


def test_mode_jax_alone_does_not_import_flax() -> None:
    check = "import sys, rollstream.graph.backends.jax.engine; sys.exit('flax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False, timeout=100).returncode == 0


def test_the_folder_has_nothing_else_on_demand() -> None:
    import rollstream.graph.backends.jax as folder

    with pytest.raises(AttributeError, match="has no attribute Torch"):
        folder.Torch  # noqa: B018
