"""The endpoint that lets a trained (or training) policy act: for demonstrations, dashboards and tests of a policy, not for control loops
of a millisecond."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import anyio.to_thread
from fastapi import APIRouter, Body, Depends, Request

from rollstream_control.api.experiments import ExperimentId
from rollstream_control.api.models import ActReply, ActRequest
from rollstream_control.api.parts import CellParts, Parts
from rollstream_control.api.problems import responses
from rollstream_control.api.tokens import require_viewer
from rollstream_control.api.views import require_status
from rollstream_control.failure import Failure
from rollstream_control.served_policies import Asked

__all__ = ["ACTS_AT_ONCE", "router"]

router = APIRouter(prefix="/v1/experiments/{experiment}", tags=["experiments"], dependencies=[Depends(require_viewer)])

ACTS_AT_ONCE = 4
"""Requests that act together; others wait, and no other endpoint waits with them."""
EXAMPLES = {
    "one": {"summary": "one observation", "value": {"observation": [0.01, -0.2, 0.03, 0.4]}},
    "batch": {
        "summary": "two sampled actions for nested observations",
        "value": {
            "observations": [{"position": [0.5, 1.0], "holding": 1}, {"position": [0.0, 0.2], "holding": 0}],
            "deterministic": False,
            "seed": 7,
        },
    },
}


@router.post("/act", responses=responses(400, 404, 409, 413, 422), summary="Let an experiment's policy act")
async def act(
    request: Request, parts: Parts, experiment: ExperimentId, wish: Annotated[ActRequest, Body(openapi_examples=EXAMPLES)]
) -> ActReply:
    """Actions for one observation or several, by the newest published weights, through the same policy that evaluation uses.

    Observations are nested as the environment's space: a Dict is an object, a Tuple a list, an array nested lists. Actions come back in
    the environment's own values, nested as its action space. A 422 lists every bad field with its path.
    """
    work = functools.partial(_act, parts, experiment, wish)
    return await anyio.to_thread.run_sync(work, limiter=request.app.state.acts)


def _act(parts: CellParts, experiment: str, wish: ActRequest) -> ActReply:
    require_status(parts, experiment)
    observations, states = _one_of("observation", wish), _one_of("state", wish)
    if observations is None:
        raise Failure("give an observation, or a list of observations", status=422, kind="invalid")
    if states is not None and len(states) != len(observations):
        raise Failure(
            f"there are {len(observations)} observations and {len(states)} states: give one state for each observation",
            status=422,
            kind="invalid",
        )
    asked = Asked(observations=observations, states=states, deterministic=wish.deterministic, seed=wish.seed)
    acted = parts.policies.act(experiment, parts.experiments.spec(experiment), asked)
    return ActReply(
        id=experiment,
        actions=tuple(acted.actions),
        states=None if acted.states is None else tuple(acted.states),
        weights_version=acted.version,
        seed=acted.seed,
    )


def _one_of(name: str, wish: ActRequest) -> dict[str, Any] | None:
    """What is given as `name` or as a list of them, by path; None when neither is."""
    one, several = name in wish.model_fields_set, getattr(wish, f"{name}s")
    if one and several is not None:
        raise Failure(f"give either {name} or {name}s, not both", status=422, kind="invalid")
    if one:
        return {name: getattr(wish, name)}
    return None if several is None else {f"{name}s.{index}": value for index, value in enumerate(several)}
