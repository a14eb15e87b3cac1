"""Who starts and stops actors: the local supervisor, Kubernetes, or a person."""

from rollstream_control.cluster.scaling import LocalScaling, NoScaling, Scaling

__all__ = ["LocalScaling", "NoScaling", "Scaling"]
