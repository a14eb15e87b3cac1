"""Experiments from files, and environments that are looked at in a process of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from rollstream.clock import SystemClock
from rollstream.config import EnvironmentSpec
from rollstream.envs import inspect_environment
from rollstream.errors import ConfigError
from rollstream.store import Experiments, Store
from rollstream_control.failure import Failure
from rollstream_control.submission.inspection import EnvironmentInspector
from rollstream_control.submission.registry import RegisteredAlgorithms
from rollstream_control.submission.submitter import Submitter
from rollstream_control.submission.validation import Inspected, Validator

MODULE = """
import os, signal, sys, time
import gymnasium

class Good(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), "float32")
    action_space = gymnasium.spaces.Discrete(4)
    def __init__(self, noise=0.0):
        print("a chatty environment")
        print("on both streams", file=sys.stderr)
    def reset(self, *, seed=None, options=None):
        return self.observation_space.sample(), {}
    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}

class Raises(Good):
    def __init__(self):
        raise RuntimeError("no licence for the simulator")

class Hangs(Good):
    def __init__(self):
        time.sleep(3600)

class Crashes(Good):
    def __init__(self):
        os.kill(os.getpid(), signal.SIGSEGV)

class Exits(Good):
    def __init__(self):
        os._exit(7)

class Wordy(Good):
    observation_space = gymnasium.spaces.Text(8)

class Secrets(Good):
    def __init__(self):
        raise RuntimeError("sees " + repr(sorted(name for name in os.environ if name.startswith("ROLLSTREAM"))))
"""


@pytest.fixture
def inspector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EnvironmentInspector:
    (tmp_path / "odd_environments.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("ROLLSTREAM_OPERATOR_TOKEN", "do-not-show")
    return make_inspector(deadline_s=30.0)


def make_inspector(*, deadline_s: float) -> EnvironmentInspector:
    allow = ("odd_environments", "package_of_actors_only")

    def inspect_here(spec: EnvironmentSpec) -> Inspected:
        return inspect_environment(spec, allow=allow)

    return EnvironmentInspector(inspect_here=inspect_here, allow=allow, deadline_s=deadline_s, clock=SystemClock())


def environment(name: str, **kwargs: float) -> EnvironmentSpec:
    return EnvironmentSpec(id=f"odd_environments:{name}", kwargs=dict(kwargs))


def test_a_users_environment_is_looked_at_in_a_child_whatever_it_prints(inspector: EnvironmentInspector) -> None:
    found = inspector.inspect(environment("Good", noise=0.5))
    assert found is not None
    assert [(leaf.name, leaf.shape) for leaf in found.observation_leaves] == [("observation", (3,))]
    assert found.action_leaves[0].counts == (4,)


def test_a_registered_environment_with_arguments_gives_the_same_in_a_child(inspector: EnvironmentInspector) -> None:
    child = inspector.inspect(EnvironmentSpec(id="CartPole-v1", kwargs={"sutton_barto_reward": True}))
    here = inspector.inspect(EnvironmentSpec(id="CartPole-v1"))
    assert child is not None
    assert here is not None
    assert (child.observation_leaves, child.action_leaves) == (here.observation_leaves, here.action_leaves)


def test_a_constructor_that_raises_is_quoted_with_its_traceback(inspector: EnvironmentInspector) -> None:
    with pytest.raises(ConfigError, match="no licence for the simulator") as caught:
        inspector.inspect(environment("Raises"))
    assert "odd_environments.py" in str(caught.value)


def test_a_constructor_that_hangs_is_given_up_at_the_deadline(inspector: EnvironmentInspector) -> None:
    with pytest.raises(ConfigError, match="did not say within 0.5 s what its spaces are"):
        make_inspector(deadline_s=0.5).inspect(environment("Hangs"))


def test_a_constructor_that_crashes_the_interpreter_costs_one_child(inspector: EnvironmentInspector) -> None:
    with pytest.raises(ConfigError, match="ended the process that looked at its spaces .signal SIGSEGV"):
        inspector.inspect(environment("Crashes"))
    with pytest.raises(ConfigError, match="ended the process that looked at its spaces .exit code 7"):
        inspector.inspect(environment("Exits"))


def test_a_space_that_cannot_be_stored_is_refused(inspector: EnvironmentInspector) -> None:
    with pytest.raises(ConfigError, match="observation"):
        inspector.inspect(environment("Wordy"))


def test_the_child_does_not_see_our_secrets(inspector: EnvironmentInspector) -> None:
    with pytest.raises(ConfigError, match="sees") as caught:
        inspector.inspect(environment("Secrets"))
    assert "ROLLSTREAM_OPERATOR_TOKEN" not in str(caught.value)


def test_a_package_that_only_actors_have_is_left_to_them(inspector: EnvironmentInspector) -> None:
    assert inspector.inspect(EnvironmentSpec(id="package_of_actors_only:Sim")) is None


def test_a_module_that_is_not_on_the_list_is_refused(inspector: EnvironmentInspector) -> None:
    with pytest.raises(ConfigError, match="is not allowed here"):
        inspector.inspect(EnvironmentSpec(id="os:system"))


def test_too_many_looks_at_once_are_turned_away(inspector: EnvironmentInspector) -> None:
    busy = make_inspector(deadline_s=0.2)
    assert busy._slots.acquire()
    assert busy._slots.acquire()
    with pytest.raises(Failure, match="other environments have been inspected for"):
        busy.inspect(environment("Good"))


SPEC_FILE = "name: from-file\nalgorithm: ppo\nenvironment: {id: CartPole-v1}\nseed: 7\n"


@pytest.fixture
def submitter(store: Store) -> Submitter:
    return Submitter(store, validator=Validator(algorithms=RegisteredAlgorithms(), inspector=make_inspector(deadline_s=30.0)))


def test_a_file_is_submitted_once_per_content(submitter: Submitter, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text(SPEC_FILE)
    first, again = submitter.submit_file(path), submitter.submit_file(path)
    assert (first.created, again.created, first.id) == (True, False, again.id)
    assert first.id.startswith("from-file-")
    Experiments(store).set_phase(first.id, "succeeded")
    assert not submitter.submit_file(path).created
    path.write_text(SPEC_FILE.replace("seed: 7", "seed: 8"))
    other = submitter.submit_file(path)
    assert other.created
    assert other.id != first.id
    assert Experiments(store).ids() == [first.id, other.id]


def test_a_bad_file_lists_every_bad_field(submitter: Submitter, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text("algorithm: ppo\nenvironment: {id: CartPole-v1}\nactors: 0\nsettings: {epoch: 1}\nday: 2020-01-01\n")
    with pytest.raises(ConfigError, match="day: must be text, number"):
        submitter.submit_file(path)
    path.write_text("algorithm: ppo\nenvironment: {id: CartPole-v1}\nsettings: {epoch: 1}\n")
    with pytest.raises(ConfigError, match=r"settings.epoch: unknown setting; did you mean 'epochs'\?"):
        submitter.submit_file(path)
    assert Experiments(store).ids() == []


def test_a_missing_file_is_named_with_its_variable(submitter: Submitter, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: .* check ROLLSTREAM_EXPERIMENT_FILE"):
        submitter.submit_file(tmp_path / "nothing.yaml")


def test_a_drawn_id_that_is_taken_is_drawn_again(store: Store) -> None:
    draws = iter(["aaaaaa", "aaaaaa", "bbbbbb"])
    validator = Validator(algorithms=RegisteredAlgorithms(), inspector=make_inspector(deadline_s=30.0))
    submitter = Submitter(store, validator=validator, draw=lambda: next(draws))
    document = {"algorithm": "ppo", "environment": {"id": "CartPole-v1"}}
    assert [submitter.submit(document).id for _ in range(2)] == ["experiment-aaaaaa", "experiment-bbbbbb"]


def test_an_algorithm_that_cannot_act_on_the_spaces_is_refused(submitter: Submitter) -> None:
    with pytest.raises(ConfigError, match="environment") as caught:
        submitter.submit({"algorithm": "dqn", "environment": {"id": "MountainCarContinuous-v0"}})
    assert [problem.path for problem in caught.value.problems] == ["environment"]
