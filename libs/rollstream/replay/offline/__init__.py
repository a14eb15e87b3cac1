"""Data that were recorded elsewhere: read from files as rows, written into tables at memory speed, and back into files.

    .npz, Minari dataset ─▶ OfflineRows ─▶ write_rows ─▶ writer ─▶ table ─▶ export ─▶ .npz

Nothing here needs a running environment. `rollstream replay load` and `dump`, and `LocalReplay.load`, are thin around it.
"""

from rollstream.replay.offline.dump import DumpedShard, dump_npz, shard_of_index
from rollstream.replay.offline.loading import LoadResult, write_rows
from rollstream.replay.offline.minari_files import load_minari
from rollstream.replay.offline.npz import load_npz
from rollstream.replay.offline.recorded import OfflineRows, Transitions, rows_of

__all__ = [
    "DumpedShard",
    "LoadResult",
    "OfflineRows",
    "Transitions",
    "dump_npz",
    "load_minari",
    "load_npz",
    "rows_of",
    "shard_of_index",
    "write_rows",
]
