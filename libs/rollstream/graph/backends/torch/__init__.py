"""PyTorch: the only folder that imports it. Nothing here is imported before a torch mode is asked for."""

from rollstream.graph.backends.torch.threads import set_threads

__all__ = ["set_threads"]
