"""Keeps a second instance out: a Cypress lock under a transaction that pings keep alive."""

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from yt.common import YtError

from ..cluster import Client
from ..errors import JobError
from ..job import Connection
from ..log import say

#: The cluster releases the lock after this long without a ping: a restart after a crash may have to
#: wait that long, and a driver that is cut off may run on that long.
LOCK_SECONDS = 30.0
PING_SECONDS = 5.0
_POLL_SECONDS = 0.5


class InstanceLock:
    """Holds ``<consumer>.lock``, a child lock of the consumer's folder: no node is made for it."""

    def __init__(self, client: Client, consumer: str) -> None:
        self._client = client
        self._folder, _, name = consumer.rpartition("/")
        self._key = f"{name}.lock"
        self._transaction: Any = None

    @property
    def is_held(self) -> bool:
        """False once a ping has failed: another instance may start from then on."""
        return self._transaction is not None and bool(self._transaction.is_pinger_alive())

    def acquire(self, say: Callable[[str], None]) -> None:
        """Take the lock, or wait for a dead holder to expire. Raises JobError when one pings."""
        transaction = self._client.Transaction(
            timeout=LOCK_SECONDS * 1000,
            ping=True,
            ping_period=PING_SECONDS * 1000,
            attributes={
                "title": f"one instance of {self._folder}/{self._key}",
                "job": f"process {os.getpid()} on {socket.gethostname()}",
            },
        )
        pings: dict[str, str] = {}  # of each transaction that is seen holding the lock
        try:
            while not self._try_lock(transaction.transaction_id):
                for id_, owner, ping in self._holders():
                    if id_ not in pings:
                        say(
                            f"another instance ({owner}) holds the lock; "
                            f"if it is dead, the lock is free within {LOCK_SECONDS:.0f} s"
                        )
                    elif ping != pings[id_]:
                        raise JobError(
                            f"another instance of this job is running: {owner}, transaction {id_}",
                            "stop it first (SIGTERM, or abort its operation); nothing was started",
                        )
                    pings[id_] = ping
                time.sleep(_POLL_SECONDS)
        except BaseException:
            self._transaction = transaction
            self.release()
            raise
        self._transaction = transaction

    def release(self) -> None:
        """Release the lock; harmless when it was never held or is lost."""
        if self._transaction is not None:
            # It has expired, or will without pings: both release the lock.
            with contextlib.suppress(YtError, OSError):
                self._transaction.abort()
            self._transaction = None

    def _try_lock(self, transaction_id: str) -> bool:
        try:
            with self._client.Transaction(transaction_id=transaction_id):
                self._client.lock(self._folder, mode="shared", child_key=self._key)
        except YtError as error:
            if error.is_concurrent_transaction_lock_conflict():
                return False
            raise
        return True

    def _holders(self) -> Iterator[tuple[str, str, str]]:
        """Yield transaction, owner and last ping of each holder that still exists."""
        for lock in self._client.get(f"{self._folder}/@locks"):
            if lock.get("child_key") == self._key and lock.get("state") == "acquired":
                id_ = str(lock["transaction_id"])
                try:
                    # "owner" itself is a builtin of every object: the account that created it.
                    found = self._client.get(f"#{id_}", attributes=["job", "last_ping_time"])
                except YtError as error:
                    if error.is_resolve_error():
                        continue
                    raise
                ping = str(found.attributes["last_ping_time"])
                yield id_, str(found.attributes.get("job", "unknown")), ping


@contextmanager
def alone(connection: Connection) -> Iterator[InstanceLock]:
    """Hold the lock that keeps other instances out. Raises JobError when one runs."""
    lock = InstanceLock(connection.client, connection.settings.consumer)
    lock.acquire(say)
    try:
        yield lock
    finally:
        lock.release()
