"""Where a user finds data-parallel ranks. Importing this imports torch; `rollstream.graph` itself never does."""

from rollstream.graph.backends.torch.parallel import RankGroup, run_ranks
from rollstream.graph.backends.torch.shared_update import SharedUpdate

__all__ = ["RankGroup", "SharedUpdate", "run_ranks"]
