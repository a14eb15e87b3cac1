"""A user's algorithm in an installed package: PPO that fails where its settings say."""

from rollstream.algorithms import Algorithm

__all__ = ["ALGORITHM"]

ALGORITHM = Algorithm(name="theirs", package="their_algorithms", settings="Settings", agent="TheirAgent", needs_replay=False)
