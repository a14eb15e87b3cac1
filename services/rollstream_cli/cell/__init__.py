"""A cell on this machine: an embedded Redis and the service processes, started, watched and stopped together.

Import from the submodules: `cell.local_cell` is the supervisor, `cell.state` is what it leaves on disk.
"""

__all__: list[str] = []
