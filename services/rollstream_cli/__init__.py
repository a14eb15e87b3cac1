"""The command line `rollstream`: cells on this machine, experiments on any cell, checkpoints and benchmarks.

Submodules are imported by name and inside commands, so that `rollstream --help` answers at once.
"""

__all__: list[str] = []
