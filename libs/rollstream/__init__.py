"""Rollstream: distributed reinforcement learning on Kubernetes."""

__version__ = "0.1.0"
__all__ = ["__version__"]
