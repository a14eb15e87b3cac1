"""O81: a consumer thread dies when Redis restarts and never reads again.

Here: the server is killed under load; writer and reader go on by themselves, and no entry is lost or acknowledged unread.
"""

from __future__ import annotations

import os
import signal
import threading

import redis

from rollstream.store import EmbeddedServer, Store

STREAM = "rs:test:stream"
ENTRIES = 400


def test_no_entry_is_lost_and_reading_goes_on_when_the_server_is_killed_under_load(store: Store, server: EmbeddedServer) -> None:
    store.run("make the group", lambda client: client.xgroup_create(STREAM, "g", id="0", mkstream=True))

    def write() -> None:
        for number in range(ENTRIES):
            # a repeated attempt adds the entry again, never leaves it out: readers drop duplicates by number
            store.run("add", lambda client, number=number: client.xadd(STREAM, {"n": number}))

    def take(client: redis.Redis) -> list[int]:
        # entries delivered but not acknowledged come first: the reply that carried them may have been lost
        for start in ("0", ">"):
            reply = client.xreadgroup("g", "c", {STREAM: start}, count=10, block=200)
            if reply and reply[0][1]:
                entries = reply[0][1]
                client.xack(STREAM, "g", *[entry for entry, _ in entries])
                return [int(fields[b"n"]) for _, fields in entries]
        return []

    seen: set[int] = set()
    writer = threading.Thread(target=write)
    writer.start()
    killed = False
    while len(seen) < ENTRIES:
        seen.update(store.run("read", take))
        if not killed and len(seen) > ENTRIES // 4:
            killed = True
            os.kill(server.pid, signal.SIGKILL)
            while server.poll() is None:
                pass
            server.start()
    writer.join(timeout=60.0)
    assert seen == set(range(ENTRIES))
    assert killed
