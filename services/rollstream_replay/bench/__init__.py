"""`rollstream bench replay`: how fast the replay path is on this machine, and against dm-reverb in the same run.

    options ─▶ plan ─▶ cases ─┬─▶ ours:   embedded server, replay service, clients as processes of their own
                              └─▶ reverb: its server and clients, run by another Python (`reverb_peer.py`)
               index (no network) · limit (the server's own benchmark program) · memory, recovery, checkpoint, reconnect
                              │
                              ▼
               figures ─▶ ratios ─▶ targets met? ─▶ JSON, Markdown, plot

Both sides run in turn (ours, reverb, ours, reverb ...), at the same priority, with the same payloads and flush sizes; the best setting
of each is compared with the best of the other. How and why: `docs/bench/reverb.md`.
"""

from rollstream_replay.bench.run import main

__all__ = ["main"]
