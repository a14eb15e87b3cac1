"""Returns and advantages: pure functions of rewards, discounts and values."""

from rollstream.graph.returns.gae import gae
from rollstream.graph.returns.n_step import n_step_return

__all__ = ["gae", "n_step_return"]
