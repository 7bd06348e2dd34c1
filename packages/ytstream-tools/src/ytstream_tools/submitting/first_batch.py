"""Waits until what was started has its first batch, and says what happens meanwhile."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from yt.common import YtError

from ytstream.cluster import operation
from ytstream.cluster.client import Client, first_line
from ytstream.cluster.operation import Operation
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.stop_request import end_of
from ytstream.job import JobContext
from ytstream.ledger import ledger_rows
from ytstream.ledger.positions import read_head

_POLL_SECONDS = 2.0
_NO_JAVA = re.compile(r"exited with code 127\b|bin/java: No such file")
"""What a node says that has no Java in the folder where SPYT looks for it: the driver's command
begins with that program, and 127 is bash's code for one that is missing."""
SHOWN = 30
"""How many lines of a driver's stderr are shown."""


@dataclass
class FirstBatchWait:
    """Watches one operation and the ledger."""

    context: JobContext
    id: str
    epoch: int
    """The epoch before the submit: every later one is of this operation."""
    say: Callable[[str], None]
    pause: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    seconds: float | None = None
    """None: as long as `wait_seconds` says."""
    seen: list[tuple[str, float]] = field(default_factory=list)
    """What was waited for, and after how many seconds it was seen first."""
    _said: str = ""
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        """Begin to count the seconds."""
        self._began = self.clock()

    def first_batch(self) -> str:
        """Return what shows that the job works. Raises JobError when it does not, in time."""
        submit = self.context.settings.submit
        limit = submit.wait_seconds if self.seconds is None else self.seconds
        is_away = False
        while True:
            try:
                found = operation.get(self._client, self.id)
                if found is None:
                    raise JobError(
                        f"operation {self.id} is gone",
                        "look for it in the interface",
                        code=ErrorCode.OPERATION_GONE,
                    )
                done = self.look(found)
                is_away = False
            except (YtError, OSError) as error:  # it may come back; the operation runs on
                if not is_away:
                    self._tell(f"the cluster does not answer: {first_line(error)}")
                is_away = True
                done = None
            if done is not None:
                return done
            if self.clock() - self._began >= limit:
                raise self._too_late(limit)
            self.pause(_POLL_SECONDS)

    def look(self, found: Operation) -> str | None:
        """Return what shows that the job works; None: not yet. Raises JobError when it failed."""
        if done := self.in_ledger(found):
            return done
        runs = operation.runs(self._client, found.id)
        if found.is_final or any(run.state == "failed" for run in runs):
            raise self._failed(found, runs)
        self._tell(self._progress(found, runs))
        return None

    def in_ledger(self, found: Operation) -> str | None:
        """Return the first batch, or the first look of a job whose executors have come."""
        path, select = self.context.settings.ledger, self._client.select_rows
        for row in select(ledger_rows.newest_query(path, 1)):
            if int(row["epoch"]) > self.epoch:
                name = ledger_rows.batch_name(int(row["epoch"]), int(row["batch"]))
                return f"the first batch is in the ledger: {name}, {row['rows_read']} rows read"
        for row in select(ledger_rows.look_query(path)):
            if int(row["epoch"]) > self.epoch and self._has_executor(found):
                return "the job runs, and there is nothing to read yet"
        return None

    def _has_executor(self, found: Operation) -> bool:
        runs = operation.runs(self._client, found.executors) if found.executors else []
        return any(run.state == "running" for run in runs)

    def _progress(self, found: Operation, runs: Sequence[operation.Run]) -> str:
        """Return what the job is waiting for now."""
        drivers = {run.state for run in runs}
        if "running" not in drivers:
            return f"operation {found.state}: waiting for a node for the driver"
        if not found.executors:
            return "the driver runs: waiting until it has started Spark and its executors"
        if not self._has_executor(found):
            return "the driver runs: waiting for nodes for the executors"
        return "driver and executors run: waiting for the first batch"

    def _tell(self, line: str) -> None:
        if line != self._said:
            after = self.clock() - self._began
            self.say(f"{after:5.0f} s  {line}")
            self.seen.append((line, after))
            self._said = line

    def _failed(self, found: Operation, runs: Sequence[operation.Run]) -> JobError:
        why = self._why(found) or next((run.error for run in runs if run.error), "")
        state = f"its operation is {found.state}" if found.is_final else "its first attempt failed"
        # In one line: that one is the record of the version.
        said = ": ".join(filter(None, (state, why)))
        lines = [f"the driver did not reach its first batch: {said}"]
        lines += stderr_of_newest(self._client, found.id, SHOWN)
        text = "\n".join(lines)
        cause = "name the folder of the nodes' Java as `java` under [submit]"
        return JobError(
            text,
            f"{cause if _NO_JAVA.search(text) else 'correct the cause'} and submit again; "
            f"{self._logs} has all that the driver said",
            code=ErrorCode.FIRST_BATCH,
        )

    def _why(self, found: Operation) -> str:
        """Return the reason that the job has given, or the cluster."""
        head = read_head(self.context.settings.ledger, self._client.select_rows)
        is_ours = head is not None and operation.id_in(head.owner) == found.id
        ended = end_of(self.context, head.owner) if head is not None and is_ours else None
        return found.error or (ended.how if ended is not None else "")

    def _too_late(self, limit: float) -> JobError:
        last = self._said or "nothing was seen of it"
        return JobError(
            f"no batch within {limit:.0f} s; the last seen: {last}",
            f"see whether the pool has free resources and {self._logs}, then submit again; a "
            "longer wait is wait_seconds under [submit]",
            code=ErrorCode.FIRST_BATCH_LATE,
        )

    @property
    def _logs(self) -> str:
        return self.context.make("logs")

    @property
    def _client(self) -> Client:
        return self.context.client


def stderr_of_newest(client: Client, id_: str, count: int) -> Iterator[str]:
    """Yield the end of the newest attempt's stderr, that of the last failed one if it said none."""
    for run in operation.runs(client, id_):
        if said := operation.last_lines(operation.stderr(client, id_, run.id), count):
            yield f"the end of what job {run.id} has written:"
            yield from (f"  {line}" for line in said)
            return
