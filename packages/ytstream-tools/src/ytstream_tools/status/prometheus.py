"""`metrics`: where the job is, for Prometheus, served or written once.

Names follow Prometheus' conventions ("Metric and label naming"): a prefix, base units, `_total` for
what only grows. Counters come from the ledger's totals, so a restart of the job does not reset
them, and a scrape that was missed loses nothing.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime

import prometheus_client
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from yt.common import YtError

from ytstream.cluster import operation
from ytstream.cluster.client import client_of
from ytstream.errors import JobError, RestartableError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, JobContext
from ytstream.ledger.ledger_rows import BatchTimes, KeyChanges, LookupTotals
from ytstream.log import say, warn
from ytstream.settings.job_settings import token

from . import job_status
from .archive_status import ArchiveStatus
from .job_status import JobStatus, ProcessState

_LOOP_SECONDS = 3600.0
_REQUEST_SECONDS = 8.0
"""A request to a cluster that hangs: Prometheus waits for 10 seconds (scrape_timeout) by default,
and must hear that `ytstream_up` is 0."""

HELP: Mapping[str, str] = {
    "ytstream_up": "Whether cluster and ledger could be read: 1, or 0 without any other metric.",
    "ytstream_job_info": "Always 1: commit, version and operation of the job, and its runbook.",
    "ytstream_lag_rows": "Rows of the partition that no batch has read.",
    "ytstream_lag_seconds": "How long the first of these rows has waited; absent if unknown.",
    "ytstream_queue_rows_total": "All rows ever written to the partition.",
    "ytstream_rows_read_total": "Rows that batches have read.",
    "ytstream_rows_written_total": "Rows that batches have written, by output.",
    "ytstream_keys_total": "Keys of outputs with MERGE: changed, removed or left as they are.",
    "ytstream_rows_rejected_total": "Rejected rows, by reason.",
    "ytstream_rows_warned_total": "Rows that WARN counts, by reason. They are not rejected.",
    "ytstream_rows_late_total": "Rows behind the watermark: in `rejected`, or in no output.",
    "ytstream_rows_without_event_time_total": "Rows without an event time, not kept out by REJECT.",
    "ytstream_lookup_rows_total": "Rows with a key that lookup() has looked up, by reference.",
    "ytstream_lookup_keys_total": "Keys that were asked for, by reference.",
    "ytstream_lookup_missing_total": "Rows whose key the reference does not have.",
    "ytstream_lookup_hits_total": "Rows that executors had in their caches, by reference.",
    "ytstream_lookup_seconds_total": "Seconds that tasks have waited for lookups, by reference.",
    "ytstream_batches_total": "Completed batches.",
    "ytstream_batch_seconds_total": "Seconds that batches have taken.",
    "ytstream_last_batch_seconds": "Seconds that the last batch has taken.",
    "ytstream_last_batch_part_seconds": "Seconds of the last batch: transform, write, verify; and "
    "the commit before it.",
    "ytstream_epoch": "The epoch: each start of the query raises it.",
    "ytstream_head_age_seconds": "Seconds since the last batch ended.",
    "ytstream_process_state": "The state of the last process: 1 for the current state.",
    "ytstream_read_minus_written_rows": "For a map: rows read minus rows in output and rejected.",
    "ytstream_state_rows": "Rows of the state after the last batch.",
    "ytstream_state_memory_bytes": "Memory of the state store, in all executors together.",
    "ytstream_state_file_bytes": "Files of RocksDB on the executors' disks; 0 for memory.",
    "ytstream_state_store_seconds": "Seconds that the last batch's tasks spent in the state store.",
    "ytstream_state_checkpoint_bytes": "Size of the checkpoint that a start reads.",
    "ytstream_watermark_timestamp_seconds": "The watermark, in seconds since 1970.",
    "ytstream_account_used_ratio": "The part of an account's quota that is used, by resource.",
    "ytstream_total_used_ratio": "The part of its 64 bits that a sum has used up, by column. Up to "
    "a half it is an upper bound.",
    "ytstream_static_tables_waiting": "Tables of static outputs that wait for publication.",
    "ytstream_archive_staged_rows": "Rows of an archive that are in no table yet.",
    "ytstream_archive_staged_bytes": "Size of these rows.",
    "ytstream_archive_tables_waiting": "Tables that these rows become.",
    "ytstream_archive_overdue_seconds": "Since when the oldest of them could be complete; 0: none.",
    "ytstream_archive_complete_until_timestamp_seconds": "Up to when all tables of an archive are "
    "there, in seconds since 1970.",
}
"""Metric -> its help. One that ends with _total is a counter, any other a gauge."""
Sample = tuple[str, Mapping[str, str], float]
"""Metric, labels in addition to `app`, and value. Prometheus gives every series a label `job`."""


def samples(context: JobContext, found: JobStatus) -> Iterator[Sample]:
    """Yield the figures of one reading."""
    yield "ytstream_up", {}, 1
    yield "ytstream_job_info", _named(context, found), 1
    for part in found.partitions:
        where = {"queue": part.queue, "partition": str(part.number)}
        yield "ytstream_lag_rows", where, part.lag
        if not part.lag or part.seconds is not None:
            yield "ytstream_lag_seconds", where, part.seconds or 0.0
        yield "ytstream_queue_rows_total", where, part.end
    for state in ProcessState:
        yield "ytstream_process_state", {"state": state}, float(found.process == state)
    if found.head is not None:
        yield from _of_batches(context, found)
    if found.state is not None:
        yield "ytstream_state_checkpoint_bytes", {}, found.state.bytes
        if found.state.rows is not None:
            yield "ytstream_state_rows", {}, found.state.rows
        if (store := found.state.store) is not None:
            yield "ytstream_state_memory_bytes", {}, store.memory_bytes
            yield "ytstream_state_file_bytes", {}, store.file_bytes
            yield "ytstream_state_store_seconds", {}, store.milliseconds / 1000
        if found.state.watermark:
            yield "ytstream_watermark_timestamp_seconds", {}, found.state.watermark / 1000
    for used in found.accounts:
        where = {"account": used.account, "resource": used.resource}
        yield "ytstream_account_used_ratio", where, used.ratio
    for one in found.sums:
        yield "ytstream_total_used_ratio", {"output": one.output, "column": one.column}, one.share
    if found.static is not None:
        yield "ytstream_static_tables_waiting", {}, found.static.waiting
    for archive in found.archives:
        yield from _of_archive(archive)


def _of_archive(one: ArchiveStatus) -> Iterator[Sample]:
    where = {"output": one.output}
    yield "ytstream_archive_staged_rows", where, one.rows
    yield "ytstream_archive_staged_bytes", where, one.bytes
    yield "ytstream_archive_tables_waiting", where, one.tables
    yield "ytstream_archive_overdue_seconds", where, one.overdue_seconds
    if one.complete_until:
        time = datetime.fromisoformat(one.complete_until).timestamp()
        yield "ytstream_archive_complete_until_timestamp_seconds", where, time


def _named(context: JobContext, found: JobStatus) -> Mapping[str, str]:
    """Return what tells this run of the job from others, with the addresses of more."""
    seen = found.operation
    note = seen.note if seen is not None else {}
    return {
        "commit": str(note.get("commit") or ""),
        "version": str(note.get("version") or ""),
        "operation": seen.id if seen is not None else "",
        "url": (operation.address(context.client, seen.id) or "") if seen is not None else "",
        "runbook": context.settings.runbook_url or "",
    }


def _of_batches(context: JobContext, found: JobStatus) -> Iterator[Sample]:
    if (head := found.head) is None:
        return
    totals, job = head.totals, context.job
    yield "ytstream_epoch", {}, head.epoch
    yield "ytstream_batches_total", {}, head.number
    yield "ytstream_rows_read_total", {}, totals.read
    for output in job.outputs:
        yield "ytstream_rows_written_total", {"output": output}, totals.written.get(output, 0)
    for output in job.merge:
        keys = asdict(totals.changes.get(output, KeyChanges()))
        for change, count in keys.items():
            yield "ytstream_keys_total", {"output": output, "change": change}, count
    # A reason appears before its first row, so that the first one is an increase.
    for reason in dict.fromkeys((*job.reject, *totals.rejected)):
        yield "ytstream_rows_rejected_total", {"reason": reason}, totals.rejected.get(reason, 0)
    for reason in dict.fromkeys((*job.warn, *totals.warned)):
        yield "ytstream_rows_warned_total", {"reason": reason}, totals.warned.get(reason, 0)
    if job.kind.is_stateful:
        yield "ytstream_rows_late_total", {}, totals.late
        yield "ytstream_rows_without_event_time_total", {}, totals.without_time
    for name in job.references:
        used = totals.lookups.get(name, LookupTotals())
        yield "ytstream_lookup_rows_total", {"reference": name}, used.rows
        yield "ytstream_lookup_keys_total", {"reference": name}, used.keys
        yield "ytstream_lookup_missing_total", {"reference": name}, used.missing
        yield "ytstream_lookup_hits_total", {"reference": name}, used.hits
        yield "ytstream_lookup_seconds_total", {"reference": name}, used.seconds
    yield "ytstream_batch_seconds_total", {}, totals.seconds
    if found.age is not None:
        yield "ytstream_last_batch_seconds", {}, found.batches[-1].seconds
        yield "ytstream_head_age_seconds", {}, found.age
        times = asdict(found.batches[-1].times or BatchTimes())
        for part, milliseconds in times.items():
            yield "ytstream_last_batch_part_seconds", {"part": part}, milliseconds / 1000
    if job.processing == "map":
        written = sum(totals.written.get(name, 0) for name in ("output", REJECTED))
        yield "ytstream_read_minus_written_rows", {}, totals.read - written


def metrics_of(job: str, found: Iterable[Sample]) -> list[Metric]:
    """Return the samples as the client library has them."""
    made: dict[str, Metric] = {}
    for name, labels, value in found:
        if name not in made:
            is_counter = name.endswith("_total")
            kind = CounterMetricFamily if is_counter else GaugeMetricFamily
            made[name] = kind(name, HELP[name], labels=["app", *labels])
        made[name].add_metric([job, *labels.values()], value)  # type: ignore[attr-defined]
    return [*made.values()]


class Collector:
    """Reads the status whenever Prometheus asks. Concurrent requests take turns."""

    def __init__(self, job: str, look: Callable[[], Iterable[Sample]]) -> None:
        self._job, self._look = job, look
        self._turn = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Return nothing: what there is depends on the job, and registering does not look."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Return what is found now; of a cluster that does not answer, only that."""
        with self._turn:
            try:
                found = [*self._look()]
            except (YtError, OSError, JobError, RestartableError) as error:
                warn(f"metrics: {error}")
                found = [("ytstream_up", {}, 0.0)]
        return metrics_of(self._job, found)


def once(context: JobContext) -> str:
    """Return the text of one reading; of a cluster that does not answer, that it is not up."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(collector(context))
    return str(prometheus_client.generate_latest(registry).decode())


def collector(context: JobContext) -> Collector:
    """Return what reads the job's status; it gives up before Prometheus does."""
    settings = context.settings
    client = client_of(settings.proxy, token(settings), patient=False, seconds=_REQUEST_SECONDS)
    own = replace(context, client=client)
    return Collector(context.job.name, lambda: samples(own, job_status.read(own)))


def serve(context: JobContext, address: str, port: int) -> None:
    """Answer Prometheus until Ctrl-C or SIGTERM. Raises JobError for a port that is taken."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(collector(context))
    try:
        server, _ = prometheus_client.start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise JobError(
            f"cannot listen on {address}:{port}: {error.strerror}",
            "name another --port",
            code=ErrorCode.ADDRESS_TAKEN,
        ) from error
    say(f"metrics on http://{address}:{server.server_port}/metrics, until Ctrl-C")
    sys.stderr.flush()
    try:
        while True:
            time.sleep(_LOOP_SECONDS)
    except KeyboardInterrupt:
        server.shutdown()
