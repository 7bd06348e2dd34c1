"""Keeps a second instance out: a Cypress lock under a transaction that this process pings.

No guarantee hangs on it, the epoch decides who may write. The lock makes a second start wait or
refuse, instead of ending the first one.
"""

import threading
import time
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass

from yt.common import YtError

from ..cluster.client import Client, connect
from ..cluster.operation import is_own
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..log import warn
from ..recovery.epoch import this_process
from .process_identity import is_dead, this_one

LOCK_SECONDS = 30.0
"""The cluster releases the lock after this long without a ping: a restart after a crash on another
machine may have to wait that long."""
PING_SECONDS = 5.0
WAIT_SECONDS = 300.0
"""How long a start waits for a lock that is not of another instance."""
_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Holder:
    """How an error names another holder, and what to do about it."""

    what: str = "another instance of this job is running"
    remedy: str = "stop it first (`make stop`, or SIGTERM); nothing was started"


_REPLAY = Holder(
    "`replay-rejected` or `rewind` is at work for this job",
    "repeat this when it has ended; nothing was changed",
)


class InstanceLock:
    """Holds ``<consumer>.lock``, a child lock of the consumer's folder: no node is made for it."""

    def __init__(
        self, client: Client, consumer: str, other: Holder = Holder(), me: str = ""
    ) -> None:
        self._client = client
        self._other = other
        self._me = f"{me}{', ' if me else ''}{this_process()}"
        self._folder, _, name = consumer.rpartition("/")
        self._key = f"{name}.lock"
        self._transaction: str | None = None

    def acquire(self, say: Callable[[str], None]) -> None:
        """Take the lock, or wait for a dead holder to expire.

        One that was killed on this machine is not waited for. YTsaurus starts one attempt of an
        operation after the other: it takes the lock from the one before, which may live on a node
        that is cut off, and can write nothing more once the epoch is raised. Raises JobError when
        any other holder pings, or when another lock on the folder does not go away.
        """
        transaction = self._begun()
        pings: dict[str, str] = {}  # of each transaction that is seen holding the lock
        end, next_line = time.monotonic() + WAIT_SECONDS, 0.0
        try:
            while not self._try_lock(transaction):
                is_freed = False
                for id_, owner, ping in self.holders():
                    if is_own(owner):
                        say(f"the lock is taken from a previous attempt of this operation: {owner}")
                        is_freed |= self._end(id_, pings)
                    elif is_dead(self.process(id_)):
                        say(f"the lock is taken from {owner}, which has died")
                        is_freed |= self._end(id_, pings)
                    elif id_ not in pings:
                        say(
                            f"another instance ({owner}) holds the lock; "
                            f"if it is dead, the lock is free within {LOCK_SECONDS:.0f} s"
                        )
                    elif ping != pings[id_]:
                        raise JobError(
                            f"{self._other.what}: {owner}, transaction {id_}",
                            self._other.remedy,
                            code=ErrorCode.ANOTHER_INSTANCE,
                        )
                    pings[id_] = ping
                if is_freed:
                    continue
                now = time.monotonic()
                others = "" if pings else self._others()
                if now > end:
                    raise JobError(
                        f"{self._folder} stays locked: {others or 'by a dead instance'}",
                        "have that transaction ended (yt abort-tx), then start again",
                        code=ErrorCode.LOCKED,
                    )
                if others and now > next_line:
                    say(f"waiting: {self._folder} is locked by {others}")
                    next_line = now + 60.0
                time.sleep(_POLL_SECONDS)
                self._client.ping_transaction(transaction)
        except BaseException:
            self._abort(transaction)
            raise
        self._transaction = transaction

    def _end(self, holder: str, seen: Container[str]) -> bool:
        """End the transaction of a holder; return whether the lock may be free now.

        Not where that was tried before: then the loop waits, or it would ask without a pause.
        """
        self._abort(holder)
        return holder not in seen

    def keep(self) -> None:
        """Ping once. Take the lock again if it has expired and no other instance has it."""
        if self._transaction is None:
            return
        try:
            self._client.ping_transaction(self._transaction)
        except YtError as error:
            # Released meanwhile, by a command that ends: then it is the next one's.
            if not _is_gone(error) or self._transaction is None:
                return
            transaction = self._begun()
            if self._try_lock(transaction):
                self._transaction = transaction
            else:
                self._abort(transaction)

    def release(self) -> None:
        """Release the lock; harmless when it was never held or is lost."""
        transaction, self._transaction = self._transaction, None
        if transaction is not None:
            self._abort(transaction)

    def holders(self) -> Iterator[tuple[str, str, str]]:
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

    def process(self, id_: str) -> str:
        """Return what alive.this_one() has said in the process that holds the lock."""
        try:
            return str(self._client.get(f"#{id_}/@process"))
        except YtError as error:
            if error.is_resolve_error():  # it has ended, or is of an older version
                return ""
            raise

    def _others(self) -> str:
        """Name the other transactions that lock the folder."""
        return ", ".join(
            f"transaction {lock['transaction_id']} ({lock['mode']})"
            for lock in self._client.get(f"{self._folder}/@locks")
            if lock.get("child_key") is None and lock.get("state") == "acquired"
        )

    def _begun(self) -> str:
        attributes = {
            "title": f"one instance of {self._folder}/{self._key}",
            "job": self._me,
            "process": this_one(),
        }
        return str(
            self._client.start_transaction(timeout=LOCK_SECONDS * 1000, attributes=attributes)
        )

    def _try_lock(self, transaction_id: str) -> bool:
        try:
            with self._client.Transaction(transaction_id=transaction_id):
                self._client.lock(self._folder, mode="shared", child_key=self._key)
        except YtError as error:
            if error.is_concurrent_transaction_lock_conflict():
                return False
            raise
        return True

    def _abort(self, transaction: str) -> None:
        # It has expired, or will without pings: both release the lock.
        with suppress(YtError, OSError):
            self._client.abort_transaction(transaction)


def own_transaction(client: Client, consumer: str) -> str:
    """Return the transaction of the lock that this process holds. Raises JobError without it."""
    folder, lock = consumer.rpartition("/")[0], InstanceLock(client, consumer)
    me = this_process().rpartition(", ")[0]
    for id_, owner, _ in lock.holders():
        if owner.rpartition(", ")[0] == me and lock.process(id_) == this_one():
            return id_
    raise JobError(
        f"this process has lost the lock of {folder}",
        "let one instance run",
        code=ErrorCode.ANOTHER_INSTANCE,
    )


def alone(context: JobContext, me: str = "") -> AbstractContextManager[None]:
    """Hold the lock that keeps other instances out. Raises JobError when one runs.

    ``me`` is what others are told of this process, if it does not run the job.
    """
    return held(context, context.settings.consumer, Holder(), me)


def without_replays(context: JobContext) -> AbstractContextManager[None]:
    """Hold the lock that keeps `rewind` and replays of rejected rows apart.

    A replay may run next to the job, so the job's own lock cannot do that.
    """
    return held(context, f"{context.settings.consumer}-replay", _REPLAY)


@contextmanager
def held(context: JobContext, path: str, other: Holder, me: str = "") -> Iterator[None]:
    """Hold the lock of ``path``. Raises JobError when another process holds it and lives."""
    # A client of its own: its pings come from another thread.
    lock = InstanceLock(connect(context.settings), path, other, me)
    lock.acquire(warn)
    over = threading.Event()

    def ping() -> None:
        while not over.wait(PING_SECONDS):
            with suppress(YtError, OSError):  # an outage: the next ping may come through
                lock.keep()

    thread = threading.Thread(target=ping, name="lock", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(PING_SECONDS)
        lock.release()


def _is_gone(error: YtError) -> bool:
    return bool(error.is_resolve_error() or error.is_no_such_transaction())
