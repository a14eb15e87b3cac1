"""Where a user finds data-parallel ranks. Importing this imports torch; `rollstream.graph` itself never does."""

from rollstream.graph.backends.torch.parallel import RankGroup, run_ranks

__all__ = ["RankGroup", "run_ranks"]
