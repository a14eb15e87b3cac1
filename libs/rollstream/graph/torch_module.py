"""Where a user finds `TorchModule`. Importing this imports torch; `rollstream.graph` itself never does."""

from rollstream.graph.backends.torch.module import TorchModule

__all__ = ["TorchModule"]
