"""Exported policies do what the policy does, without Rollstream."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from rollstream.acting import Policy
from rollstream.errors import ConfigError, SchemaMismatch
from rollstream.graph import ActorCriticPolicy, QPolicy, build_acting, declare
from rollstream.graph.components.preprocessing import Preprocessing, parse_chains
from rollstream.graph.export import export_policy, signature_of
from rollstream.graph.inputs import Input, flat_inputs, sample
from rollstream.graph.ops import Array
from rollstream.graph.scope import Scope
from rollstream.graph.scope import api as scoped
from rollstream.seeding import child_generator
from rollstream.spaces import leaves

ROWS = 5
VECTOR = spaces.Box(-1.0, 1.0, (4,), np.float64)
NESTED = spaces.Dict(
    {"image": spaces.Box(0, 255, (20, 24, 3), np.uint8), "arm": spaces.Tuple([VECTOR, spaces.Discrete(3, start=5)])}
)
ACTIONS = spaces.Tuple([spaces.Discrete(3, start=-1), spaces.Box(-3.0, 5.0, (2,), np.float64), spaces.MultiBinary(2)])


def _actor_critic(observation: gymnasium.Space[Any], action: gymnasium.Space[Any], **settings: Any) -> ActorCriticPolicy:
    return ActorCriticPolicy(leaves(observation, "observation"), leaves(action, "action"), **settings)


def _normalized() -> ActorCriticPolicy:
    observation = leaves(VECTOR, "observation")
    chains = parse_chains({"observation": [{"kind": "normalize"}]})
    return _actor_critic(VECTOR, spaces.Discrete(3, start=-1), preprocessing=Preprocessing(observation, chains=chains))


POLICIES: dict[str, Any] = {
    "discrete": lambda: _actor_critic(VECTOR, spaces.Discrete(3, start=-1)),
    "q": lambda: QPolicy(leaves(VECTOR, "observation"), leaves(spaces.Discrete(4, start=2), "action"), dueling=True),
    "box": lambda: _actor_critic(VECTOR, spaces.Box(-2.0, 3.0, (2,), np.float64), bounds="squash"),
    "nested": lambda: _actor_critic(NESTED, ACTIONS, convolutions="atari"),
    "recurrent": lambda: _actor_critic(VECTOR, spaces.Discrete(3, start=-1), recurrent="lstm"),
    "normalized": _normalized,
}


def _tensors(policy: Any) -> dict[str, np.ndarray]:
    """Random parameters and state."""
    declared, generator = declare(policy), np.random.default_rng(1)
    flat = declared.layout.init(0) + generator.normal(0, 0.2, declared.layout.size).astype(np.float32)
    state = np.abs(generator.normal(0, 1, declared.state_layout.size)).astype(np.float32)
    return {**declared.layout.split(flat), **declared.state_layout.split(state)}


def _columns(policy: Any, api: str = "greedy") -> dict[str, np.ndarray]:
    drawn = sample(policy.arguments(api), rows=ROWS, generator=np.random.default_rng(2))
    return {item.name: drawn[item.name] for item in flat_inputs(policy.arguments(api))}


def _export(policy: Any, form: Any, to: Path, **more: Any) -> dict[str, Any]:
    given = {"api": "greedy", "rows": None, **more}
    signature = signature_of(policy, actions=policy.actions, **given)
    facts = {"algorithm": "ppo"}
    export_policy(policy, _tensors(policy), signature=signature, observation=policy.observation, form=form, to=to, facts=facts)
    about: dict[str, Any] = json.loads((to / "metadata.json").read_text())
    return about


def _run(form: str, to: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    if form == "onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        session = onnxruntime.InferenceSession(str(to / "policy.onnx"))
        names = [output.name for output in session.get_outputs()]
        wanted = {item.name for item in session.get_inputs()}
        return dict(zip(names, session.run(None, {name: inputs[name] for name in wanted}), strict=True))
    torch = pytest.importorskip("torch")
    program = torch.export.load(to / "policy.pt2").module()
    outputs = program({name: torch.from_numpy(array) for name, array in inputs.items()})
    return {name: tensor.detach().numpy() for name, tensor in outputs.items()}


@pytest.mark.parametrize("form", ["onnx", "pt2"])
@pytest.mark.parametrize("name", POLICIES)
def test_an_exported_policy_takes_the_actions_of_the_policy(name: str, form: str, tmp_path: Path) -> None:
    policy = POLICIES[name]()
    _export(policy, form, tmp_path)
    inputs = _columns(policy)
    for rows in (1, ROWS):
        part = {key: column[:rows] for key, column in inputs.items()}
        found = _run(form, tmp_path, part)
        acting = build_acting(policy, batch=rows, mode="numpy")
        acting.load_tensors(_tensors(policy))
        expected = acting.greedy(part)
        for leaf in policy.actions:
            assert found[leaf.name].dtype == np.dtype(leaf.dtype)
            np.testing.assert_allclose(found[leaf.name], expected[leaf.name], atol=1e-5)
        remembered = {f"next.{column}": expected[column] for column in expected if column.startswith("recurrent.")}
        assert found.keys() == {leaf.name for leaf in policy.actions} | remembered.keys()
        for column, state in remembered.items():
            np.testing.assert_allclose(found[column], state, atol=1e-5)


@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_it_acts_as_the_class_that_actors_and_control_use(form: str, tmp_path: Path) -> None:
    policy = POLICIES["nested"]()
    _export(policy, form, tmp_path)
    acting = build_acting(policy, batch=ROWS)
    acting.load_tensors(_tensors(policy))
    used = Policy(acting=acting, actions=policy.actions, extra=policy.extra_columns, generator=child_generator(0, "act"))
    inputs = _columns(policy)
    expected, found = used.greedy(inputs), _run(form, tmp_path, inputs)
    for leaf in policy.actions:
        np.testing.assert_allclose(found[leaf.name], expected[leaf.name], atol=1e-5)
        assert found[leaf.name].dtype == expected[leaf.name].dtype


@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_o32_all_actions_of_a_space_with_another_start_come_out(form: str, tmp_path: Path) -> None:
    policy = POLICIES["discrete"]()
    _export(policy, form, tmp_path)
    observation = np.random.default_rng(0).normal(0, 3, (400, 4))
    assert set(_run(form, tmp_path, {"observation": observation})["action"].tolist()) == {-1, 0, 1}


@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_sampled_actions_come_from_noise_that_is_an_input(form: str, tmp_path: Path) -> None:
    policy = POLICIES["discrete"]()
    about = _export(policy, form, tmp_path, api="act")
    inputs = _columns(policy, "act")
    assert [item["name"] for item in about["inputs"] if item["role"] == "noise"] == [name for name in inputs if "noise" in name]
    acting = build_acting(policy, batch=ROWS, mode="numpy")
    acting.load_tensors(_tensors(policy))
    noise = {name: array for name, array in inputs.items() if "noise" in name}
    expected = acting.act({"observation": inputs["observation"]}, np.random.default_rng(0), noise=noise)
    found = _run(form, tmp_path, inputs)
    for name in ("action", "log_prob", "value"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5)


@pytest.mark.parametrize("form", ["onnx", "pt2"])
def test_a_fixed_number_of_rows_is_kept(form: str, tmp_path: Path) -> None:
    policy = POLICIES["discrete"]()
    about = _export(policy, form, tmp_path, rows=2)
    assert about["inputs"][0]["shape"] == [2, 4]
    assert about["outputs"] == [{"name": "action", "dtype": "<i8", "shape": [2]}]
    assert _run(form, tmp_path, {"observation": np.zeros((2, 4))})["action"].shape == (2,)
    with pytest.raises(Exception, match=r"(?i)dimension|shape|size"):
        _run(form, tmp_path, {"observation": np.zeros((3, 4))})


def test_the_tensors_alone_have_their_names(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    policy = POLICIES["normalized"]()
    _export(policy, "safetensors", tmp_path)
    found, expected = load_file(tmp_path / "policy.safetensors"), _tensors(policy)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        np.testing.assert_array_equal(found[name], tensor)


def test_the_metadata_says_what_goes_in_and_what_comes_out(tmp_path: Path) -> None:
    about = _export(POLICIES["nested"](), "onnx", tmp_path)
    assert about["algorithm"] == "ppo"
    assert (about["format"], about["file"], about["api"]) == ("onnx", "policy.onnx", "greedy")
    assert about["sha256"] == hashlib.sha256((tmp_path / "policy.onnx").read_bytes()).hexdigest()
    assert {item["name"]: (item["dtype"], item["shape"]) for item in about["inputs"]} == {
        "observation.arm.0": ("<f8", ["rows", 4]),
        "observation.arm.1": ("<i8", ["rows"]),
        "observation.image": ("|u1", ["rows", 20, 24, 3]),
    }
    assert {item["name"]: (item["dtype"], item["shape"]) for item in about["outputs"]} == {
        "action.0": ("<i8", ["rows"]),
        "action.1": ("<f8", ["rows", 2]),
        "action.2": ("|i1", ["rows", 2]),
    }
    assert about["observation_space"][0] | {"name": ""} == {
        "name": "",
        "kind": "box",
        "dtype": "<f8",
        "shape": [4],
        "low": -1.0,
        "high": 1.0,
    }
    assert about["action_space"][0]["values"] == "one of -1 to 1, as the environment counts"
    assert "InferenceSession" in about["how_to_run"]


def test_bounds_that_do_not_exist_are_null(tmp_path: Path) -> None:
    policy = _actor_critic(spaces.Box(np.float32([-np.inf, 0.0]), np.float32([np.inf, np.inf])), spaces.Discrete(2))
    (leaf,) = _export(policy, "safetensors", tmp_path)["observation_space"]
    assert (leaf["low"], leaf["high"]) == ([None, 0.0], None)


def test_what_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    policy = POLICIES["discrete"]()
    with pytest.raises(ConfigError, match="unknown export format 'h5'; known: onnx, pt2, safetensors"):
        _export(policy, "h5", tmp_path)
    with pytest.raises(ConfigError, match="ActorCriticPolicy has no API 'dance' to export; it has act, greedy"):
        _export(policy, "onnx", tmp_path, api="dance")
    with pytest.raises(ConfigError, match="an exported policy takes at least 1 row, got 0"):
        _export(policy, "onnx", tmp_path, rows=0)
    other = _tensors(POLICIES["q"]())
    signature = signature_of(policy, actions=policy.actions, api="greedy", rows=None)
    with pytest.raises(SchemaMismatch, match="tensors do not fit the policy"):
        export_policy(policy, other, signature=signature, observation=policy.observation, form="onnx", to=tmp_path, facts={})


def test_a_box_of_integers_stays_within_its_bounds(tmp_path: Path) -> None:
    policy = _actor_critic(VECTOR, spaces.Box(-3, 4, (2,), np.int32))
    _export(policy, "onnx", tmp_path)
    found = _run("onnx", tmp_path, {"observation": np.random.default_rng(0).normal(0, 50, (100, 4))})["action"]
    assert found.dtype == np.int32
    assert found.min() >= -3
    assert found.max() <= 4


@dataclass(frozen=True)
class _CountsRows:
    """Adds a constant to each row, so it is made for one number of rows."""

    actions: tuple[Any, ...] = ()
    observation: tuple[Any, ...] = ()
    apis = ("greedy",)

    def arguments(self, api: str) -> dict[str, Input]:
        return {"x": Input(name="x", shape=(2,))}

    @scoped
    def greedy(self, scope: Scope, *, x: Array) -> dict[str, Array]:
        return {"action": x + scope.ops.constant(np.ones((x.shape[0], 2), np.float32))}


def test_a_policy_with_a_constant_for_each_row_needs_a_fixed_number(tmp_path: Path) -> None:
    signature = signature_of(_CountsRows(), actions=(), api="greedy", rows=None)
    with pytest.raises(ConfigError, match="_CountsRows.greedy: a constant has one entry for each row.*fix the number"):
        export_policy(_CountsRows(), {}, signature=signature, observation=(), form="onnx", to=tmp_path, facts={})
    fixed = signature_of(_CountsRows(), actions=(), api="greedy", rows=3)
    export_policy(_CountsRows(), {}, signature=fixed, observation=(), form="onnx", to=tmp_path, facts={})
    assert _run("onnx", tmp_path, {"x": np.ones((3, 2), np.float32)})["action"].tolist() == [[2.0, 2.0]] * 3
