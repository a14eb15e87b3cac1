"""`rollstream train`: a run on this machine, from start to summary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rollstream.config import ExperimentSpec
    from rollstream_cli.training import RunOutcome

__all__ = ["train", "train_in_cell"]


def train(
    algorithm: Annotated[str | None, typer.Argument(metavar="ALGO", help="ppo, dqn, ...; may stand in --file instead.")] = None,
    *,
    env: Annotated[str | None, typer.Option(help="Gymnasium id, envpool:Name, or module:callable.")] = None,
    file: Annotated[Path | None, typer.Option(help="Experiment spec as YAML or JSON; options win over it.")] = None,
    actors: Annotated[int | None, typer.Option(help="Actor processes.")] = None,
    envs_per_actor: Annotated[int | None, typer.Option(help="Environments that one actor steps as a batch.")] = None,
    seed: Annotated[int | None, typer.Option(help="Root of all random streams.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated.")] = None,
    stop_return: Annotated[float | None, typer.Option(help="Stop at this mean return of the last episodes.")] = None,
    stop_steps: Annotated[int | None, typer.Option(help="Stop after this many environment steps.")] = None,
    stop_updates: Annotated[int | None, typer.Option(help="Stop after this many updates.")] = None,
    inline: Annotated[bool, typer.Option("--inline", help="One process, one thread, deterministic: for debugging.")] = False,
    json_to: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the summary as JSON; - for stdout.")
    ] = None,
    runs_dir: Annotated[Path, typer.Option(help="Folder of all runs.")] = Path("runs"),
    name: Annotated[str | None, typer.Option(help="Readable part of the run's id.")] = None,
    from_checkpoint: Annotated[str | None, typer.Option(help="Checkpoint, or run, to start from.")] = None,
) -> None:
    """Train an agent: starts a cell on this machine, runs to the stop rule, evaluates, and sums up."""
    from rollstream_cli.document import SpecOptions, build_spec
    from rollstream_cli.json_target import check_json_target

    spec = build_spec(
        SpecOptions(
            algorithm=algorithm,
            environment=env,
            file=file,
            name=name,
            actors=actors,
            envs_per_actor=envs_per_actor,
            seed=seed,
            stop_return=stop_return,
            stop_steps=stop_steps,
            stop_updates=stop_updates,
            overrides=settings or (),
            from_checkpoint=from_checkpoint,
        )
    )
    check_json_target(json_to)
    if inline:
        _train_inline(spec, runs_dir=runs_dir, json_to=json_to)
        return
    from rollstream_cli.run_directory import new_run_id

    run_id = new_run_id(spec.name)
    train_in_cell(spec, run_id=run_id, cell_dir=runs_dir / run_id, runs_dir=runs_dir, json_to=json_to, resumed=False)


def _train_inline(spec: ExperimentSpec, *, runs_dir: Path, json_to: str | None) -> None:
    import os

    from rollstream.clock import SystemClock
    from rollstream.errors import ConfigError
    from rollstream.flow import describe_error
    from rollstream_cli.allowed_modules import allowed_modules
    from rollstream_cli.errors import ExperimentFailed
    from rollstream_cli.failure import failure_message
    from rollstream_cli.inline import run
    from rollstream_cli.output import error_console, result_console, write_json
    from rollstream_cli.progress import make_progress
    from rollstream_cli.summary import print_summary

    progress = make_progress(error_console(), clock=SystemClock())
    try:
        summary = run(spec, runs_dir=runs_dir, report=progress.report, allow=allowed_modules(os.environ, spec.environment.id))
    except ConfigError:
        raise
    except Exception as error:  # whatever the user's code raises
        told = describe_error(error)
        raise ExperimentFailed(failure_message(spec.name, reason=told.message, detail=told.traceback)) from error
    finally:
        progress.close()
    if json_to != "-":
        print_summary(result_console(), summary, title=f"{summary.get('experiment', spec.name)} (inline)")
    if json_to is not None:
        write_json(summary, json_to)


def train_in_cell(
    spec: ExperimentSpec, *, run_id: str, cell_dir: Path, runs_dir: Path, json_to: str | None, resumed: bool
) -> None:
    """Run `spec` in a cell of its own, or continue `run_id` there when `resumed`, and tell how it ended."""
    from rollstream.clock import SystemClock
    from rollstream_cli.cell.nursery import Nursery
    from rollstream_cli.cell.shared_imports import OF_ALL_SERVICES, shared_imports
    from rollstream_cli.output import error_console
    from rollstream_cli.session import plan_cell, replay_shards_of
    from rollstream_cli.training import Training

    replay_shards = replay_shards_of(spec)
    with Nursery() as nursery:
        nursery.prepare(OF_ALL_SERVICES, control=1)
        nursery.prepare(shared_imports(spec), replay=replay_shards, learner=1, actor=spec.actors)
        plan = plan_cell(
            cell_dir,
            runs_dir=runs_dir,
            actors=spec.actors,
            replay_shards=replay_shards,
            environment_id=spec.environment.id,
        )
        training = Training(
            plan, spec=spec, run_id=run_id, resumed=resumed, nursery=nursery, console=error_console, clock=SystemClock()
        )
        outcome = training.run()
    _tell(outcome, json_to=json_to)


def _tell(outcome: RunOutcome, *, json_to: str | None) -> None:
    from rollstream_cli.output import error_console, result_console, write_json
    from rollstream_cli.summary import print_summary

    if json_to != "-":
        print_summary(result_console(), outcome.summary, title=f"{outcome.experiment}: {outcome.phase}")
    if json_to is not None:
        write_json(outcome.summary, json_to)
    if outcome.phase != "succeeded":
        error_console().print(f"resume with: rollstream resume {outcome.directory}", markup=False, soft_wrap=True)
    if outcome.interrupted:
        raise typer.Exit(130)
