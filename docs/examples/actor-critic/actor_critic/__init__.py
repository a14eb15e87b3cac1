"""Advantage actor-critic: an algorithm outside of Rollstream, in the same three pages as those inside."""

from rollstream.algorithms import Algorithm

__all__ = ["ALGORITHM"]

ALGORITHM = Algorithm(
    name="actor-critic",
    package="actor_critic",
    settings="ActorCriticConfig",
    agent="ActorCriticAgent",
    needs_replay=False,
)
