"""`rollstream bench train|replay|graph|flow`: measurements on this machine, as JSON for comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollstream_cli.commands.options import JsonTo

__all__ = ["bench"]

bench = typer.Typer(help="Measure training, replay, the graph and flow on this machine.", no_args_is_help=True)


@bench.command()
def train(
    *,
    algorithm: Annotated[str, typer.Option("--algo", metavar="ALGO", help="ppo, dqn, ...")] = "ppo",
    env: Annotated[str, typer.Option(help="Gymnasium id, envpool:Name, or module:callable.")] = "CartPole-v1",
    seconds: Annotated[float, typer.Option(min=1.0, help="Length of the measured window.")] = 20.0,
    warm_up_s: Annotated[float, typer.Option("--warm-up", min=0.0, help="Seconds between first update and window.")] = 5.0,
    actors: Annotated[int | None, typer.Option(help="Actor processes.")] = None,
    envs_per_actor: Annotated[int | None, typer.Option(help="Environments that one actor steps as a batch.")] = None,
    seed: Annotated[int | None, typer.Option(help="Root of all random streams.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")] = None,
    against: Annotated[str | None, typer.Option(metavar="SYSTEM", help="Measure in turn with it: rllib.")] = None,
    rllib_python: Annotated[str | None, typer.Option(metavar="PATH", help="A Python that has ray[rllib].")] = None,
    only: Annotated[
        str | None,
        typer.Option(metavar="PART,...", help="With --against: parts: ppo, impala, appo, dqn, goal, busy, breaks. All."),
    ] = None,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="With --against: runs of each; the median counts.")] = 1,
    json_to: JsonTo = None,
) -> None:
    """Rates of sampling and training once a run is steady, time to its first update, processor and memory.

    With --against rllib: PPO, IMPALA, APPO and DQN on CartPole-v1 in turn with RLlib, as JSON with targets; --algo, --env, --warm-up,
    --actors, --envs-per-actor and --seed do not count then.
    """
    if against is not None or rllib_python is not None:
        words = ["--seconds", str(seconds), "--repeats", str(repeats), "--json", json_to or "-"]
        words += ["--only", only] if only else []
        words += [word for setting in settings or () for word in ("--set", setting)]
        _against(against, rllib_python, words)
    import tempfile

    from rollstream.clock import SystemClock
    from rollstream_cli.document import SpecOptions, build_spec
    from rollstream_cli.interrupts import catch_interrupts
    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.measure import TrainingBench
    from rollstream_cli.output import error_console, result_console, write_json
    from rollstream_cli.session import plan_cell, replay_shards_of
    from rollstream_cli.summary import print_measurement

    check_json_target(json_to)
    spec = build_spec(
        SpecOptions(
            algorithm=algorithm,
            environment=env,
            actors=actors,
            envs_per_actor=envs_per_actor,
            seed=seed,
            overrides=["evaluation_episodes=0", *(settings or ())],
        )
    )
    console = error_console()
    with tempfile.TemporaryDirectory(prefix="rollstream-bench-") as folder, catch_interrupts() as interrupts:
        plan = plan_cell(
            Path(folder) / "cell",
            runs_dir=Path(folder),
            actors=spec.actors,
            replay_shards=replay_shards_of(spec),
            environment_id=spec.environment.id,
        )
        measured = TrainingBench(
            plan=plan,
            spec=spec,
            warm_up_s=warm_up_s,
            window_s=seconds,
            clock=SystemClock(),
            say=lambda message: console.print(message, markup=False),
        ).run(interrupts)
    if json_to is not None:
        write_json(measured, json_to)
    if json_to != "-":
        print_measurement(result_console(), measured, title=f"{algorithm} on {env}")


def _against(system: str | None, python: str | None, words: list[str]) -> None:
    import subprocess

    from rollstream.errors import ConfigError
    from rollstream_cli.leash import leashed

    if system != "rllib" or python is None:
        raise ConfigError(
            f"--against rllib and --rllib-python PATH go together, got --against {system} and --rllib-python {python}; "
            "make such a Python by: python -m venv V && V/bin/pip install torch 'ray[rllib]'"
        )
    command = [*leashed(), "-m", "rollstream_learner.bench.against", "--rllib-python", python, *words]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


@bench.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def replay(
    context: typer.Context,
    *,
    payload_bytes: Annotated[
        list[int] | None,
        typer.Option(min=4, metavar="N", help="Bytes of one item; may be repeated. One alone: the simple form, flat JSON."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A short suite: 1 client, 400 B and 40 kB, random data.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PART,...",
            help="Parts of the suite: insert, sample, update, memory, recovery, checkpoint, reconnect, index, limit, cost.",
        ),
    ] = None,
    clients: Annotated[
        list[int] | None, typer.Option(min=1, max=64, metavar="N", help="Client processes; may be repeated.")
    ] = None,
    selector: Annotated[list[str] | None, typer.Option(metavar="NAME", help="uniform, prioritized; may be repeated.")] = None,
    data: Annotated[list[str] | None, typer.Option(metavar="KIND", help="random, compressible; may be repeated.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.05, help="Length of each measurement; suite 3, simple form 5.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs of each figure; the median counts. 3.")] = None,
    items: Annotated[int | None, typer.Option(min=1, metavar="N", help="Items for memory and recovery. 1,000,000.")] = None,
    against: Annotated[str | None, typer.Option(metavar="SYSTEM", help="Measure it in turn with ours: reverb.")] = None,
    reverb_python: Annotated[str | None, typer.Option(metavar="PATH", help="A Python that has dm-reverb.")] = None,
    durability: Annotated[
        str | None, typer.Option(metavar="KIND", help="Append-only file of the server: none, aof. aof; none with --against.")
    ] = None,
    redis_server: Annotated[
        str | None, typer.Option(metavar="PATH", help="Redis or Valkey to start instead of the embedded one.")
    ] = None,
    nice: Annotated[int, typer.Option(help="Priority of all processes of both systems; below 0 needs root.")] = 0,
    markdown: Annotated[str | None, typer.Option(metavar="FILE", help="Also write the figures as Markdown.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="FILE", help="Also draw cost by table size, PNG.")] = None,
    json_to: JsonTo = None,
) -> None:
    """Rates, latency, memory and recovery of the replay path on this machine; with --against reverb in turn with dm-reverb.

    Further options go to `python -m rollstream_replay.bench` as they are.
    """
    import subprocess

    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.leash import leashed

    check_json_target(json_to)
    given: dict[str, object] = {
        "--payload-bytes": payload_bytes,
        "--only": only,
        "--clients": clients,
        "--selector": selector,
        "--data": data,
        "--seconds": seconds,
        "--repeats": repeats,
        "--items": items,
        "--against": against,
        "--reverb-python": reverb_python,
        "--durability": durability,
        "--redis-server": redis_server,
        "--nice": nice or None,
        "--markdown": markdown,
        "--plot": plot,
        "--json": json_to,
    }
    words = ["--quick"] if quick else []
    for name, value in given.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            words.append(f"{name}={one}")
    command = [*leashed(), "-m", "rollstream_replay.bench", *words, *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


@bench.command(name="graph")
def graph(
    *,
    only: Annotated[
        str | None, typer.Option(metavar="PART,...", help="Parts: act, overhead, update, build, apex, parallel, actor.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.01, help="Length of each run of each candidate.")] = 1.0,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each, of which the median counts.")] = 3,
    rllib_python: Annotated[
        str | None, typer.Option(metavar="PATH", help="A Python that has ray[rllib]: its runner beside our actor.")
    ] = None,
    json_to: JsonTo = "-",
) -> None:
    """Acting, updates and builds in every mode beside plain torch and NumPy; an actor's task and its process. One thread."""
    import os
    import subprocess

    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.leash import leashed

    check_json_target(json_to)
    words = ["--seconds", str(seconds), "--repeats", str(repeats), "--json", json_to or "-"]
    words += ["--only", only] if only else []
    words += ["--rllib-python", rllib_python] if rllib_python else []
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false".strip()
    environment = {**os.environ, **one_thread, "XLA_FLAGS": flags}
    command = [*leashed(), "-m", "rollstream_learner.bench", *words]
    raise typer.Exit(subprocess.run(command, check=False, env=environment).returncode)


@bench.command(name="flow")
def flow(
    *,
    only: Annotated[str | None, typer.Option(metavar="PART,...", help="Parts: overhead, operators, idle, scaling.")] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="Length of each run.")] = 10.0,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of scaling, of which the median counts.")] = 1,
    actors: Annotated[str, typer.Option(metavar="N,...", help="Numbers of actors to scale over.")] = "1,2,4,8,16",
    json_to: JsonTo = "-",
) -> None:
    """A flow beside the same loop by hand, what each operator costs, an idle union, and more actors."""
    import os
    import subprocess

    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.leash import leashed

    check_json_target(json_to)
    words = ["--seconds", str(seconds), "--repeats", str(repeats), "--actors", actors, "--json", json_to or "-"]
    words += ["--only", only] if only else []
    environment = {**os.environ, **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")}
    command = [*leashed(), "-m", "rollstream_learner.bench.flow", *words]
    raise typer.Exit(subprocess.run(command, check=False, env=environment).returncode)
