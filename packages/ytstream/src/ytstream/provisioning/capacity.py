"""How many rows the tablets of the outputs bear in one transaction, and where more may come.

A batch of a job without state writes about what it reads, and ``max_rows_per_partition`` bounds it.
A batch that closes windows or sessions writes a row for each, whatever it reads: the size of the
state bounds it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from yt.common import YtError

from ..cluster import resharding
from ..guarantees import sizing
from ..job import REJECTED, JobContext
from ..ledger.positions import read_head
from ..log import GrowthThresholds
from ..schema.columns import key_of
from ..settings.job_settings import ROWS_PER_TABLET_AND_TRANSACTION as LIMIT
from ..settings.job_settings import Settings
from ..text_table import counted
from .job_objects import queue_tablets, sized

NEARLY = 0.8
"""From this part of what an output bears, the log warns: a state grows while an operator reads."""


@dataclass(frozen=True)
class Capacity:
    """The tablets of one output, and the rows that they bear in one transaction."""

    path: str
    tablets: int
    rows: int
    """With a key: when keys are spread evenly."""
    has_key: bool

    def remark(self, settings: Settings, keys: int) -> str:
        """Return what happens when ``keys`` rows come at once, and what to do before."""
        bears = f"{self.path} bears {self.rows} rows in one transaction ({self.tablets} tablets"
        bears += ", keys spread evenly)" if self.has_key else ")"
        said = (
            f"{keys} keys of the state may be written in one batch, and {bears}: the cluster would "
            "refuse the batch each time, and a smaller max_rows_per_partition does not help then; "
        )
        if self.has_key:
            return said + "give it more tablets by pivot keys, with the job stopped"
        count = enough(keys, settings)
        if count is None:
            return said + f"set dyn_batch_size to {LIMIT // 50}"
        return f"{said}with the job stopped:\n{resharding.by_count(settings, self.path, count)}"


def enough(rows: int, settings: Settings, limit: int = LIMIT) -> int | None:
    """Return the tablets that bear ``rows`` without a key, and as many more; None if none do."""
    assert settings.dyn_batch_size is not None
    return sizing.enough_tablets(sizing.HEADROOM * rows, settings.dyn_batch_size, limit)


def of_outputs(context: JobContext) -> tuple[Capacity, ...]:
    """Return what each output bears that gets the finished rows of a transactional job."""
    if not context.guarantee.in_transaction:
        return ()
    settings, job = sized(context).settings, context.job
    assert settings.dyn_batch_size is not None
    found = []
    for name, columns in job.output_columns.items():
        if name in job.static or (job.rejects and name == REJECTED):
            continue
        path, has_key = settings.outputs[name], bool(key_of(columns))
        count = int(context.client.get(f"{path}/@tablet_count"))
        rows = (
            sizing.borne_by_key(count) if has_key else sizing.borne(count, settings.dyn_batch_size)
        )
        found.append(Capacity(path, count, rows, has_key))
    return tuple(found)


def largest_batch(context: JobContext) -> int:
    """Return the most rows that a batch reads."""
    partitions = sum(queue_tablets(context.client, context.settings).values())
    return context.settings.max_rows_per_partition * partitions


@dataclass
class CapacityCheck:
    """Compares the state of a running job with the tablets of its outputs."""

    context: JobContext
    said: GrowthThresholds

    @cached_property
    def capacities(self) -> tuple[Capacity, ...]:
        """The outputs' tablets, as they were when the query was young."""
        return of_outputs(self.context)

    @cached_property
    def batch_rows(self) -> int:
        """The most rows that a batch reads."""
        return largest_batch(self.context)

    def warnings(self, keys: int) -> list[str]:
        """Return what was not said yet of a state of so many keys; an outage says nothing."""
        kind, settings = self.context.job.kind, self.context.settings
        if not (keys and kind.is_grouping):
            return []
        try:
            is_update = kind.output_mode == "update"  # else all keys may come in one batch
            rows = min(keys, self.batch_rows) if is_update else keys
            return [
                capacity.remark(settings, rows)
                for capacity in self.capacities
                if self.said.is_new(capacity.path, rows, NEARLY * capacity.rows)
            ]
        except (YtError, OSError):
            return []


def remarks(context: JobContext) -> Iterator[str]:
    """Yield a line for each output that a batch may be too large for."""
    job, settings = context.job, context.settings
    if not context.guarantee.in_transaction:
        return
    rows, capacities = largest_batch(context), of_outputs(context)
    partitions = rows // settings.max_rows_per_partition
    kind = job.kind
    if kind.is_stateful and kind.is_grouping and kind.output_mode == "append":
        head = read_head(settings.ledger, context.client.select_rows)
        keys = (head.state_rows if head is not None else None) or 0
        for capacity in capacities:
            if keys > NEARLY * capacity.rows:
                yield capacity.remark(sized(context).settings, keys)
    else:
        for capacity in capacities:
            if capacity.has_key and rows > LIMIT and sizing.HEADROOM * rows > capacity.rows:
                yield _of_keys(capacity.path, capacity.tablets, rows, LIMIT // partitions)
    if job.rejects and settings.max_rows_per_partition > LIMIT:
        # Its tablets are those of the queues.
        path, rows = settings.outputs[REJECTED], settings.max_rows_per_partition
        yield _of_keys(path, partitions, rows, LIMIT)


def _of_keys(path: str, tablets: int, rows: int, fewer: int) -> str:
    return (
        f"{path} has a key and {counted(tablets, 'tablet')}, and a batch has up to {rows} rows: if "
        f"more than {LIMIT} of them belong to one tablet, the cluster refuses the transaction "
        f"each time; with max_rows_per_partition = {fewer} a batch reads no more"
    )
