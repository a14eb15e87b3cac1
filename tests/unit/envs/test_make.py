"""From a spec to an environment: which form it takes, and what is refused with which words."""

from __future__ import annotations

import inspect
from typing import Any

import gymnasium
import numpy as np
import pytest

from rollstream.config import EnvironmentSpec
from rollstream.envs import environment_seeds, inspect_environment, make_environment
from rollstream.envs.envpool import make_envpool
from rollstream.envs.gymnasium_vector import GymnasiumVector
from rollstream.envs.hostile import SimulatorBroke
from rollstream.envs.sequential import SequentialEnvironments
from rollstream.errors import ConfigError, EnvironmentFault, SpaceError

TOYS = ["rollstream.envs"]
COUNTING = "rollstream.envs.toy:CountingEnvironment"
VECTOR = "rollstream.envs.toy:CountingVector"
HOSTILE = "rollstream.envs.hostile:HostileEnvironment"


def build(environment_id: str, **fields: Any) -> Any:
    return make_environment(EnvironmentSpec(id=environment_id, **fields), envs=2, seed=0, allow=TOYS)


def kind_of(environment: Any) -> str:
    """Name of the class of the vector environment inside."""
    assert isinstance(environment, GymnasiumVector)
    return type(inspect.getattr_static(environment._simulator, "_vector")).__name__


def test_auto_takes_the_registered_vector_form() -> None:
    assert kind_of(build("CartPole-v1")) == "CartPoleVectorEnv"
    assert kind_of(build("CartPole-v1", vectorization="vector_entry_point")) == "CartPoleVectorEnv"


def test_copies_are_stepped_one_after_another_when_there_is_no_vector_form() -> None:
    assert isinstance(build("Acrobot-v1"), SequentialEnvironments)
    assert isinstance(build("CartPole-v1", vectorization="sync"), SequentialEnvironments)


def test_a_vectorizer_resets_as_it_is_asked_to() -> None:
    assert kind_of(build("Acrobot-v1", autoreset="next_step")) == "SyncVectorEnv"
    assert kind_of(build("CartPole-v1", autoreset="same_step")) == "SyncVectorEnv"
    assert not build("CartPole-v1", autoreset="same_step").resets_on_next_step


def test_an_entry_point_of_plain_environments_needs_no_vectorizer() -> None:
    assert isinstance(build(COUNTING), SequentialEnvironments)
    assert isinstance(build(COUNTING, vectorization="sync"), SequentialEnvironments)
    assert kind_of(build(COUNTING, autoreset="next_step")) == "SyncVectorEnv"
    assert kind_of(build(VECTOR)) == "CountingVector"


@pytest.mark.parametrize("environment_id", ["CartPole-v1", "Acrobot-v1", COUNTING])
@pytest.mark.parametrize("vectorization", ["auto", "sync"])
def test_a_limit_of_episode_steps_truncates(environment_id: str, vectorization: str) -> None:
    kwargs = {"lengths": [50]} if environment_id == COUNTING else {}
    environment = build(environment_id, max_episode_steps=3, vectorization=vectorization, kwargs=kwargs)
    environment.reset()
    actions = {"action": np.array([0, 1])}
    truncated = [environment.step(actions).truncated.tolist() for _ in range(3)]
    assert truncated == [[False, False], [False, False], [True, True]]


def test_seeds_are_distinct_repeatable_and_fit_31_bits() -> None:
    seeds = environment_seeds(7, envs=1000)
    assert len(set(seeds)) == 1000
    assert max(seeds) < 2**31
    assert environment_seeds(7, envs=3) == seeds[:3]
    assert environment_seeds(8, envs=3) != seeds[:3]


def test_the_same_seed_starts_the_same_episodes_in_every_vectorization() -> None:
    specs = [EnvironmentSpec(id="Acrobot-v1", vectorization="sync", autoreset=mode) for mode in ("next_step", "disabled")]  # type: ignore[arg-type]
    firsts = [make_environment(spec, envs=3, seed=9).reset()["observation"] for spec in [*specs, specs[0]]]
    assert all(np.array_equal(first, firsts[0]) for first in firsts)
    assert len({row.tobytes() for row in firsts[0]}) == 3


def test_an_unknown_id_is_refused_with_the_closest_known() -> None:
    with pytest.raises(ConfigError, match=r"unknown environment 'CartPol-v1'.*did you mean 'CartPole-v\d'\?"):
        inspect_environment(EnvironmentSpec(id="CartPol-v1"))
    with pytest.raises(ConfigError, match="unknown environment 'Zzqq'.*pprint_registry"):
        inspect_environment(EnvironmentSpec(id="Zzqq"))
    with pytest.raises(ConfigError, match="unknown environment 'CartPole-v9'"):
        inspect_environment(EnvironmentSpec(id="CartPole-v9"))


def test_inspection_gives_leaves_and_the_limit() -> None:
    info = inspect_environment(EnvironmentSpec(id="CartPole-v1"))
    assert [leaf.name for leaf in (*info.observation_leaves, *info.action_leaves)] == ["observation", "action"]
    assert info.action_leaves[0].counts == (2,)
    assert info.max_episode_steps == 500
    assert inspect_environment(EnvironmentSpec(id="CartPole-v1", max_episode_steps=9)).max_episode_steps == 9
    assert inspect_environment(EnvironmentSpec(id=COUNTING, vectorization="async"), allow=TOYS).max_episode_steps is None


def test_an_entry_point_must_be_allowed() -> None:
    spec = EnvironmentSpec(id="os:getcwd")
    with pytest.raises(ConfigError, match=r"the module 'os' is not allowed here \(allowed: none\); add it to ROLLSTREAM_"):
        make_environment(spec, envs=1, seed=0)
    with pytest.raises(ConfigError, match=r"allowed: rollstream.envs.to\)"):
        make_environment(EnvironmentSpec(id=COUNTING), envs=1, seed=0, allow=["rollstream.envs.to"])
    with pytest.raises(ConfigError, match="the module 'antigravity' is not allowed here"):
        make_environment(EnvironmentSpec(id="antigravity:Fly-v0"), envs=1, seed=0, allow=TOYS)
    make_environment(EnvironmentSpec(id=COUNTING), envs=1, seed=0, allow=[COUNTING]).close()


@pytest.mark.parametrize(
    ("environment_id", "message"),
    [
        ("rollstream.envs.nowhere:Thing", "cannot be imported: No module named"),
        ("rollstream.envs.toy:Thing", "cannot be imported: module .* has no attribute 'Thing'; the package must be installed"),
        ("rollstream.envs.hostile:INSTANCE", "is an instance of HostileEnvironment; name its class or a function"),
        ("rollstream.envs.toy:__name__", "is a str, not a class or function"),
        ("rollstream.envs.hostile:build_nothing", "built a NoneType; it must build a gymnasium.Env"),
        (HOSTILE, "cannot be built with kwargs {}: .*missing 1 required keyword-only argument: 'fault'"),
        ("envs.toy:Missing-v0", "the module 'envs.toy' is not allowed"),
        ("rollstream.envs.nowhere:Maze-v0", "cannot be imported: No module named"),
    ],
)  # fmt: skip
def test_a_bad_entry_point_says_what_is_wrong(environment_id: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(environment_id)


def test_an_instance_is_refused_because_environments_are_named() -> None:
    with pytest.raises(ConfigError, match="an environment is named, not passed: got an instance of "):
        make_environment(gymnasium.make("CartPole-v1"), envs=1, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("environment_id", "fields", "message"),
    [
        ("Acrobot-v1", {"vectorization": "vector_entry_point"}, "'Acrobot-v1' has no vector form of its own; set env"),
        (COUNTING, {"vectorization": "vector_entry_point"}, "has no vector form of its own: it takes no num_envs"),
        (VECTOR, {"vectorization": "sync"}, "takes num_envs, so it batches and limits episodes itself"),
        (VECTOR, {"max_episode_steps": 3}, "takes num_envs, so it batches and limits episodes itself"),
        (VECTOR, {"kwargs": {"declared": ""}}, r"does not declare metadata\['autoreset_mode'\]"),
        (VECTOR, {"kwargs": {"declared": "Never"}}, "declares the unknown autoreset mode 'Never'; known: NextStep"),
        (VECTOR, {"autoreset": "disabled"}, "resets in mode next_step and cannot do disabled"),
        ("CartPole-v1", {"vectorization": "vector_entry_point", "autoreset": "same_step"}, "cannot do same_step; set"),
        ("CartPole-v1", {"kwargs": {"no_such": 1}}, "'CartPole-v1' cannot be built with kwargs {'no_such': 1}"),
        ("Acrobot-v1", {"kwargs": {"no_such": 1}}, "'Acrobot-v1' cannot be built with kwargs {'no_such': 1}"),
        ("rollstream.envs.toy:build_small_vector", {}, "built a CountingVector of 1 copies; it must build .* of 2"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(environment_id: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build(environment_id, **fields)


def test_a_mode_that_is_not_declared_is_taken_from_the_spec() -> None:
    kwargs = {"declared": "", "mode": "SameStep"}
    assert not build(VECTOR, kwargs=kwargs, autoreset="same_step").resets_on_next_step


def test_a_space_that_cannot_be_stored_is_refused_when_the_environment_is_made() -> None:
    with pytest.raises(SpaceError, match="^observation.text: a Text space cannot be stored"):
        build("rollstream.envs.hostile:ReadingEnvironment")


def test_a_constructor_that_raises_is_the_environments_fault() -> None:
    with pytest.raises(EnvironmentFault, match="raised SimulatorBroke in its constructor: no license") as caught:
        build(HOSTILE, kwargs={"fault": "raise_on_build"})
    assert isinstance(caught.value.__cause__, SimulatorBroke)


def test_missing_envpool_names_the_extra() -> None:
    def fail(name: str) -> Any:
        raise ImportError(name)

    with pytest.raises(ConfigError, match=r"needs EnvPool, which is not installed; pip install 'rollstream\[envpool\]'"):
        make_envpool(EnvironmentSpec(id="envpool:Pong-v5"), seeds=[1], import_module=fail)


class ShuffledPool:
    """Returns the last copy first, as EnvPool does when it is stepped asynchronously."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    metadata = {"autoreset_mode": gymnasium.vector.AutoresetMode.NEXT_STEP}  # noqa: RUF012
    num_envs = 2

    def step(self, actions: Any) -> Any:
        return np.zeros((2, 1)), np.zeros(2), np.zeros(2, bool), np.zeros(2, bool), {"env_id": np.array([1, 0])}


class FakePool:
    """As much of EnvPool's module as refusals need."""

    def list_all_envs(self) -> list[str]:
        return ["Pong-v5", "CartPole-v1"]

    def make_gymnasium(self, task: str, **arguments: Any) -> Any:
        if not arguments.get("x"):
            return ShuffledPool()
        raise AssertionError("wrong argument")


@pytest.mark.parametrize(
    ("environment_id", "kwargs", "message"),
    [
        ("envpool:Pong-v4", {}, "EnvPool has no environment 'Pong-v4'; did you mean 'Pong-v5'"),
        ("envpool:Zzqq", {}, "EnvPool has no environment 'Zzqq'$"),
        ("envpool:Pong-v5", {"num_envs": 3, "seed": 1}, "may not set num_envs, seed; these follow from"),
        ("envpool:Pong-v5", {"x": 3}, "EnvPool cannot build 'Pong-v5' with {'x': 3}: wrong argument"),
    ],
)
def test_what_envpool_cannot_do_is_refused(environment_id: str, kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_envpool(EnvironmentSpec(id=environment_id, kwargs=kwargs), seeds=[1], import_module=lambda _: FakePool())


def test_envpool_out_of_order_is_a_fault() -> None:
    pool = make_envpool(EnvironmentSpec(id="envpool:Pong-v5"), seeds=[1, 2], import_module=lambda _: FakePool())
    with pytest.raises(EnvironmentFault, match="EnvPool returned its copies out of order; do not set batch_size"):
        pool.step({"action": np.zeros(2, np.int64)})
