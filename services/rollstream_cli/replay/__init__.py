"""What `rollstream replay` does: reach the shards of a cell, put their answers together, show them."""

from rollstream_cli.replay.tables import CellTables, ShardSays, connect_tables

__all__ = ["CellTables", "ShardSays", "connect_tables"]
