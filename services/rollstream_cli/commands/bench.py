"""`rollstream bench train|replay`: measurements on this machine, as JSON for comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rollstream_cli.commands.options import JsonTo

__all__ = ["bench"]

bench = typer.Typer(help="Measure training and replay on this machine.", no_args_is_help=True)


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
    json_to: JsonTo = None,
) -> None:
    """Rates of sampling and training once a run is steady, time to its first update, processor and memory."""
    import tempfile

    from rollstream.algorithms import needs_replay
    from rollstream.clock import SystemClock
    from rollstream_cli.document import SpecOptions, build_spec
    from rollstream_cli.interrupts import catch_interrupts
    from rollstream_cli.json_target import check_json_target
    from rollstream_cli.measure import TrainingBench
    from rollstream_cli.output import error_console, result_console, write_json
    from rollstream_cli.session import plan_cell
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
            replay_shards=1 if needs_replay(spec.algorithm) else 0,
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


@bench.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def replay(
    context: typer.Context,
    *,
    payload_bytes: Annotated[int, typer.Option(min=1, help="Bytes of one row.")] = 400,
    json_to: JsonTo = None,
) -> None:
    """Items per second inserted and sampled by one client through the whole path, and latency of a batch.

    Further options go to `python -m rollstream_replay.bench` as they are.
    """
    import subprocess

    from rollstream_cli.leash import leashed

    command = [*leashed(), "-m", "rollstream_replay.bench", "--payload-bytes", str(payload_bytes), *context.args]
    if json_to is not None:
        command += ["--json", json_to]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
