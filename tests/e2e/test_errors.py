"""What the user's code raises ends in one message that says what and where, with the user's own traceback, and in `failed`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import rollstream

TRAIN = ("train", "--envs-per-actor", "2", "--stop-steps", "100000")
OURS = str(Path(rollstream.__file__).parent)
PPO_FLOW = f"{OURS}/algorithms/ppo/flow.py"
ENDS_WITHIN_S = 30.0


def spec_file(directory: Path, **fields: Any) -> str:
    """An experiment in the user's environment, as a file; JSON is YAML."""
    kwargs = fields.pop("kwargs")
    environment = {"id": "their_env:Broken", "kwargs": kwargs, **fields.pop("environment", {})}
    path = directory / "spec.yaml"
    path.write_text(json.dumps({"algorithm": "ppo", "environment": environment, **fields}))
    return str(path)


def require_one_message(text: str) -> None:
    """One error, one traceback, no frame of ours."""
    assert [line.startswith("error: ") for line in text.splitlines()].count(True) == 1, text
    assert text.count("Traceback (most recent call last):") == 1, text
    assert f'File "{OURS}' not in text and "/services/rollstream_" not in text, text
    assert "exception was the direct cause" not in text and "During handling" not in text, text


MODES = pytest.mark.parametrize("inline", [False, True], ids=["cell", "inline"])


def inline_flag(inline: bool) -> tuple[str, ...]:
    return ("--inline",) if inline else ()


@MODES
def test_an_exception_in_the_users_environment(shell: Any, their_code: Any, inline: bool) -> None:
    file = spec_file(shell.directory, kwargs={"fault": "step"})
    done = shell.run(*TRAIN, "--file", file, *inline_flag(inline), PYTHONPATH=their_code.path)
    assert done.returncode == 1
    message = done.stderr[done.stderr.index("error: ") :]
    require_one_message(message)
    assert "operator 'rollouts' in actor 'actor-" in message
    assert f"({PPO_FLOW}:" in message
    assert "environment 'their_env:Broken' (copy 0) raised RuntimeError in step: the simulator broke" in message
    assert their_code.place("their_env.py", "the simulator broke") in message
    assert message.rstrip().endswith("RuntimeError: the simulator broke")


@MODES
def test_an_exception_in_a_step_of_the_users_flow_in_an_actor(shell: Any, their_code: Any, inline: bool) -> None:
    arguments = ("theirs", "--env", "CartPole-v1", "--set", "fault=actor_step", *inline_flag(inline))
    done = shell.run(*TRAIN, *arguments, PYTHONPATH=their_code.path)
    assert done.returncode == 1
    message = done.stderr[done.stderr.index("error: ") :]
    require_one_message(message)
    line = their_code.line("their_algorithms/flow.py", ".for_each(shape_reward")
    assert "operator 'shape_reward' in actor 'actor-" in message
    assert f"({their_code.path}/their_algorithms/flow.py:{line}) failed: KeyError: 'speed'" in message
    assert their_code.place("their_algorithms/flow.py", "raise KeyError") in message
    assert message.rstrip().endswith("KeyError: 'speed'")


@MODES
def test_an_exception_in_the_users_loss(shell: Any, their_code: Any, inline: bool) -> None:
    arguments = ("theirs", "--env", "CartPole-v1", "--set", "fault=loss", *inline_flag(inline))
    done = shell.run(*TRAIN, *arguments, PYTHONPATH=their_code.path)
    assert done.returncode == 1
    message = done.stderr[done.stderr.index("error: ") :]
    require_one_message(message)
    line = their_code.line("their_algorithms/flow.py", "learner.update()")
    assert f"operator 'update' in the learner ({their_code.path}/their_algorithms/flow.py:{line}) failed: RuntimeError" in message
    assert their_code.place("their_algorithms/agent.py", "torch.ones(3, 4) @") in message


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell that stays, whatever its experiments do."""

    url: str
    token: str
    runs: Path

    def checkpoints(self, experiment: str) -> list[str]:
        return sorted(path.name for path in (self.runs / experiment / "checkpoints").iterdir())

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(method, self.url + path, json=body, headers=headers, timeout=30.0)
        answer.raise_for_status()
        return answer.json()

    def events_of(self, experiment: str) -> list[str]:
        """Messages of an experiment's restarts of environments."""
        with httpx.stream(
            "GET",
            f"{self.url}/v1/experiments/{experiment}/events",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=30.0,
        ) as stream:
            told = [json.loads(line.removeprefix("data:")) for line in stream.iter_lines() if line.startswith("data:")]
        return [str(event["message"]) for event in told if event.get("kind") == "environment_restart"]

    def end_of(self, spec: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Submit an experiment, wait for its end; how it stands then, and its faults."""
        path = f"/v1/experiments/{self.ask('POST', '/v1/experiments', spec)['id']}"
        pause = threading.Event()
        for _ in range(int(ENDS_WITHIN_S / 0.1)):
            view: dict[str, Any] = self.ask("GET", path)
            if view["phase"] in ("failed", "succeeded", "stopped"):
                return view, [entry["data"] for entry in self.ask("GET", path + "/faults")["faults"]]
            pause.wait(0.1)
        raise AssertionError(f"not ended within {ENDS_WITHIN_S} s: {view}")


@pytest.fixture(scope="module")
def cell(make_shell: Any, their_code: Any) -> Iterator[Cell]:
    with make_shell() as shell:
        allowed = {"PYTHONPATH": their_code.path, "ROLLSTREAM_ENVIRONMENT_MODULES": "their_env"}
        done = shell.run("up", "--dir", "cell", "--actors", "1", "--replay-shards", "0", **allowed)
        assert done.returncode == 0, done.stderr
        state = json.loads((shell.directory / "cell" / "cell.json").read_text())
        yield Cell(url=state["url"], token=state["token"], runs=shell.directory / "runs")
        assert shell.run("down", "--dir", "cell").returncode == 0


def their_experiment(fault: str, *, vectorization: str = "auto", **kwargs: Any) -> dict[str, Any]:
    environment = {"id": "their_env:Broken", "kwargs": {"fault": fault, **kwargs}, "vectorization": vectorization}
    stop = {"env_steps": 2_000}
    return {"algorithm": "ppo", "environment": environment, "envs_per_actor": 2, "stop": stop, "evaluation_episodes": 0}


@pytest.mark.parametrize(
    ("fault", "vectorization", "reason", "words"),
    [
        ("step", "auto", "(copy 0) raised RuntimeError in step: the simulator broke", "the simulator broke"),
        ("step", "sync", "raised RuntimeError in step: the simulator broke", "the simulator broke"),
        ("step", "async", "in step: worker of copy 0 raised RuntimeError: the simulator broke", "the simulator broke"),
        ("reset", "auto", "(copy 0) raised RuntimeError in reset: cannot start the simulator", "cannot start the simulator"),
        ("reset", "async", "in reset: worker of copy 0 raised RuntimeError: cannot start", "cannot start the simulator"),
    ],
)
def test_a_failing_environment_is_made_anew_twice_then_the_experiment_fails(
    cell: Cell, their_code: Any, *, fault: str, vectorization: str, reason: str, words: str
) -> None:
    view, faults = cell.end_of(their_experiment(fault, vectorization=vectorization))
    assert view["phase"] == "failed"
    assert reason in view["reason"]
    assert f"operator 'rollouts' in actor 'actor-0' ({PPO_FLOW}:" in view["reason"]
    assert view["detail"].count("Traceback") == 1
    assert their_code.place("their_env.py", words) in view["detail"]
    assert OURS not in view["detail"] and "gymnasium" not in view["detail"]
    assert {(told["kind"], told["actor"]) for told in faults} == {("environment", "actor-0")}
    *survived, last = [told["fatal"] for told in faults]
    assert len(survived) >= 2 and not any(survived) and last  # more than two only when the actor was assigned anew meanwhile
    assert faults[-1]["traceback"] == view["detail"] and faults[-1]["message"] == view["reason"]
    assert faults[-1]["where"]["operator"] == "rollouts" and faults[-1]["where"]["file"] == PPO_FLOW


def test_an_environment_that_fails_in_an_actor_only_names_it(cell: Cell, their_code: Any) -> None:
    view, _ = cell.end_of(their_experiment("constructor_in_an_actor"))
    assert view["phase"] == "failed"
    assert view["reason"] == (
        "in actor 'actor-0': environment 'their_env:Broken' raised RuntimeError in its constructor: no license for the simulator"
    )
    assert their_code.place("their_env.py", "no license") in view["detail"]
    assert OURS not in view["detail"]


def test_an_environment_that_fails_for_everybody_is_refused(cell: Cell, their_code: Any) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        cell.ask("POST", "/v1/experiments", their_experiment("constructor"))
    [problem] = refused.value.response.json()["errors"]
    assert "raised RuntimeError in its constructor: no license for the simulator" in problem["message"]
    assert their_code.place("their_env.py", "no license") in problem["message"]
    assert OURS not in problem["message"]


def test_a_reward_that_is_not_a_number_names_copy_and_step(cell: Cell) -> None:
    view, faults = cell.end_of(their_experiment("nan"))
    assert view["phase"] == "failed"
    assert "operator 'rollouts' in actor 'actor-0'" in view["reason"]
    assert "it returned nan as reward of copy 0 at vector step 4, acted by weights version" in view["reason"]
    assert view["detail"] == ""  # no code of the user's raised
    assert len(faults) == 3


def test_an_environment_that_fails_once_is_made_anew_and_the_run_goes_on(cell: Cell, tmp_path: Path) -> None:
    view, faults = cell.end_of(their_experiment("once", marker=str(tmp_path / "marker")))
    assert view["phase"] == "succeeded"
    assert [(told["fatal"], "the simulator hiccuped" in told["traceback"]) for told in faults] == [(False, True)]
    assert cell.events_of(view["id"]) == ["the environment of actor-0 failed and is made anew (restart 1 of 2 in a row)"]


def test_an_environment_that_fails_in_the_evaluation_says_so_and_the_checkpoint_stays(cell: Cell, their_code: Any) -> None:
    view, faults = cell.end_of({**their_experiment("step_in_the_learner"), "evaluation_episodes": 2})
    assert view["phase"] == "failed" and faults == []
    assert view["reason"] == (
        "in the learner: in the evaluation after training: environment 'their_env:Broken' (copy 0) raised RuntimeError in step: "
        "the simulator broke"
    )
    assert their_code.place("their_env.py", "the simulator broke") in view["detail"]
    assert cell.checkpoints(view["id"]) == ["00000001"]


@pytest.mark.parametrize(
    ("fault", "reason", "file", "words"),
    [
        ("actor_step", "operator 'shape_reward' in actor 'actor-0' (", "flow.py", "raise KeyError"),
        ("loss", "operator 'update' in the learner (", "agent.py", "torch.ones(3, 4) @"),
        ("learning", "in the learner: AttributeError: there is no optimizer", "agent.py", "there is no optimizer"),
    ],
)
def test_an_algorithm_that_fails_is_failed_over_rest(
    cell: Cell, their_code: Any, *, fault: str, reason: str, file: str, words: str
) -> None:
    view, _ = cell.end_of({"algorithm": "theirs", "environment": {"id": "CartPole-v1"}, "settings": {"fault": fault}})
    assert view["phase"] == "failed"
    assert reason in view["reason"]
    assert their_code.place(f"their_algorithms/{file}", words) in view["detail"]
    assert view["detail"].count("Traceback") == 1


@pytest.mark.parametrize(
    ("fault", "message", "file", "words"),
    [
        ("agent", "algorithm 'theirs' raised AttributeError: the agent has no torso", "agent.py", "has no torso"),
        ("flow", "algorithm 'theirs' raised NameError: there is no such step", "flow.py", "raise NameError"),
    ],
)
def test_an_algorithm_that_cannot_be_built_is_refused(
    cell: Cell, their_code: Any, *, fault: str, message: str, file: str, words: str
) -> None:
    with pytest.raises(httpx.HTTPStatusError) as refused:
        cell.ask(
            "POST", "/v1/experiments", {"algorithm": "theirs", "environment": {"id": "CartPole-v1"}, "settings": {"fault": fault}}
        )
    assert refused.value.response.status_code == 422
    [problem] = refused.value.response.json()["errors"]
    assert message in problem["message"]
    assert their_code.place(f"their_algorithms/{file}", words) in problem["message"]
