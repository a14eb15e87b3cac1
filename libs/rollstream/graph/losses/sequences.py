"""Policies on rows that are sequences: T steps each, as [B, T, ...]; returns want them time-major, [T, B]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rollstream.graph.inputs import Arguments, Input, columns_of
from rollstream.graph.losses.policies import Evaluates
from rollstream.graph.ops import Array, Ops
from rollstream.graph.policies.evaluation import Evaluation
from rollstream.graph.scope import Scope

__all__ = ["evaluate_steps", "over_time", "remembers", "steps_arguments", "time_major"]


def over_time(item: Input, *, steps: int) -> Input:
    """The same input for each of `steps` steps of a row."""
    return replace(item, shape=(steps, *item.shape))


def remembers(policy: Any) -> bool:
    """Whether a policy needs what it remembered, so that steps cannot be judged one by one."""
    return bool(getattr(policy, "memory", ()))


def steps_arguments(policy: Evaluates, *, steps: int) -> Arguments:
    """What `evaluate_steps` takes of rows of `steps` steps: observations, actions, and what a recurrent policy remembers."""
    if remembers(policy):
        remembering: Any = policy
        arguments: Arguments = remembering.sequence_arguments(steps=steps)
        return arguments
    return {
        "observation": tuple(over_time(item, steps=steps) for item in columns_of(policy.observation)),
        "action": tuple(over_time(item, steps=steps) for item in policy.action_columns),
    }


def evaluate_steps(
    policy: Evaluates,
    scope: Scope,
    *,
    observation: Mapping[str, Array],
    action: Mapping[str, Array],
    recurrent: Mapping[str, Array] | None = None,
    first: Array | None = None,
) -> Evaluation:
    """Log-probability, entropy and value of each step, [B, T]; in one pass over all steps, or step by step where the policy remembers."""
    if recurrent is not None:
        remembering: Any = policy
        found: Evaluation = remembering.evaluate_sequence(
            scope, observation=observation, action=action, recurrent=recurrent, first=first
        )
        return found
    ops = scope.ops
    rows, steps = next(iter(observation.values())).shape[:2]
    judged = policy.evaluate(scope, observation=_flat(ops, observation), action=_flat(ops, action))
    log_prob, entropy = (ops.reshape(each, (rows, steps)) for each in (judged.log_prob, judged.entropy))
    return Evaluation(
        log_prob=log_prob, entropy=entropy, value=None if judged.value is None else ops.reshape(judged.value, (rows, steps))
    )


def time_major(ops: Ops, series: Array) -> Array:
    """[B, T] -> [T, B], and back."""
    return ops.transpose(series, (1, 0))


def _flat(ops: Ops, columns: Mapping[str, Array]) -> dict[str, Array]:
    """[B, T, ...] -> [B * T, ...]."""
    return {name: ops.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:])) for name, x in columns.items()}
