"""Modes `torch`, `torch-graph` and `torch-compile`. Only what lies here imports torch, which takes `OMP_NUM_THREADS` threads."""

__all__: list[str] = []
