"""A job for tests of a replacement, as an operation runs it: no Spark, its ledger is real.

Called with the proxy, the ledger, the consumer and what it is to do: "works" writes a batch,
"fails" dies before one, "hangs" never has one. All but a failed one end when the ledger asks.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

from ytstream.cluster.client import client_of
from ytstream.instance import lock as locking
from ytstream.instance.lock import InstanceLock
from ytstream.ledger import ledger_rows
from ytstream.ledger.ledger_rows import Head
from ytstream.ledger.positions import read_head
from ytstream.recovery.epoch import this_process


def main(proxy: str, path: str, consumer: str, what: str) -> None:
    locking.LOCK_SECONDS = 3.0  # of one that is aborted
    client = client_of(proxy, "any")
    lock = InstanceLock(client, consumer)
    lock.acquire(print)
    head = read_head(path, client.select_rows) or Head()
    mine = replace(head, epoch=head.epoch + 1, owner=this_process())
    client.insert_rows(path, [ledger_rows.head_row(mine)])
    if what == "fails":
        lock.release()
        sys.exit("the first batch has failed")
    if what == "works":
        mine = replace(mine, number=mine.number + 1, batch=mine.batch + 1)
        row = {**ledger_rows.look_row(mine.epoch), "kind": "batch", "number": mine.number}
        row |= {"batch": mine.batch, "rows_read": 7, "rows_written": {}, "started": 1}
        client.insert_rows(path, [ledger_rows.head_row(mine), row])
    while True:
        lock.keep()
        found = read_head(path, client.select_rows)
        if found is not None and found.stopped == mine.epoch:
            client.insert_rows(path, [ledger_rows.end_row(mine.epoch, mine.owner, "stopped")])
            lock.release()
            return
        time.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
