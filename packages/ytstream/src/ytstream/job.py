"""The job as its owner declares it, and the values that every module is handed."""

from __future__ import annotations

import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yt.type_info as ti

from .cluster.client import Client
from .schema.changes import Merge, Newest, remembers
from .schema.columns import (
    REJECTED_COLUMNS,
    Column,
    Described,
    is_totals,
    key_of,
    rejected_columns,
    resolved,
)
from .schema.periods import Archive
from .settings import spark_conf
from .settings.job_rules import RULES
from .settings.job_settings import DEFAULT_CONFIG, ROCKSDB, Settings
from .settings.resources import executor_overhead, sizes_of, state_memory_mib
from .settings.state_store import state_store_of

if TYPE_CHECKING:  # a job can be declared, and its tables made, without Spark
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Processing:
    """The needs of one kind of processing."""

    state: str = ""
    """What the state holds, in words; empty for a processing type without state."""
    has_reference: bool = False
    output_mode: str = "append"
    """Spark's: "append" gives a row once it is final, "update" whenever it has changed."""
    is_grouping: bool = False
    """Whether several rows become one."""
    has_totals_in_table: bool = False
    """Whether the table can keep what is otherwise in the state: `aggregate=` in tables.py."""
    packages: Sequence[str] = ()
    """Python packages that the driver and every executor need in addition to those of SPYT."""

    @property
    def is_stateful(self) -> bool:
        """Whether Spark keeps something from one micro-batch to the next."""
        return bool(self.state)


PROCESSINGS: Mapping[str, Processing] = {
    name: Processing(**fields) for name, fields in RULES["processing"].items()
}
"""By name; the template reads the same table."""
MOST_FAILURES = 10_000
"""`max_failed_job_count` of an operation may not be more (YTsaurus, scheduler/config.cpp)."""
REJECTED = "rejected"
"""The output of the rows that REJECT of transform.py keeps out of transform(), and of late rows."""
COUNT, REJECT = "count", "reject"
"""Values of `late`."""
LATE = "late"
"""The reason of a late row in "rejected"."""
LIGHT = ("status", "why", "logs", "stop", "drain", "metrics")
"""The commands that need neither Java nor Spark nor the job's code."""
_WITH_NAN = ("double", "float", ti.Double, ti.Float)
"""Types of columns that hold a number without an order."""
ON_DISK = "(on the driver's disk)"
"""Said of the checkpoint of a job without state: each start makes a folder
(spark/local_checkpoint.py)."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """The declaration of a job, made once in job.py. All fields are keyword arguments."""

    name: str
    """The job's name. It is part of the marks on the job's objects: a job with another name is
    another job."""
    processing: str
    """What happens to the rows: "map", "window", "join", "deduplicate", "aggregate", "merge" or
    "sessions"."""
    guarantee: str
    """What holds after a crash: "transactional", "idempotent" or "at_least_once"."""
    queue: Sequence[Described]
    """QUEUE of tables.py: the columns that all queues share."""
    outputs: Mapping[str, Sequence[Described]]
    """OUTPUTS of tables.py: the columns of each output by its name. The first is "output". REJECTED
    stands for the columns of "rejected"."""
    transform: Callable[..., DataFrame]
    """transform() of transform.py: takes the queues' rows and, for a join, the reference. It
    returns the rows of the outputs."""
    static: Sequence[str] | Mapping[str, Archive] = ()
    """STATIC of tables.py: outputs that are folders of static tables. A tuple of names gives each
    micro-batch a table. A dict of names and Hourly(...), Daily(...) or Every(...) gives each period
    one."""
    split: Callable[[DataFrame], Mapping[str, DataFrame]] | None = None
    """outputs() of transform.py: takes the finished rows of one micro-batch and returns the rows of
    each output by its name. Without it all rows go to "output"."""
    reject: Mapping[str, str] = field(default_factory=dict)
    """REJECT of transform.py: a SQL condition on the columns of QUEUE for each reason. The first
    condition that is true sends the row to "rejected" instead of transform()."""
    merge: Mapping[str, Merge] = field(default_factory=dict)
    """MERGE of transform.py: how the rows of a batch change the rows that an output with a key has.
    newest(), or a function of your own. Without an entry a row replaces the one with its key."""
    warn: Mapping[str, str] = field(default_factory=dict)
    """WARN of transform.py: conditions as those of REJECT. Rows that meet one are counted under its
    reason, and kept. A row counts under each condition that it meets."""
    late: str = COUNT
    """For jobs with state: what happens to rows that come behind the watermark. "reject" keeps each
    of them in "rejected", with the reason `late` and what it missed. "count" only counts them."""
    reference: Sequence[Described] = ()
    """For a join: the columns of the reference table, including its key."""
    references: Mapping[str, Sequence[Described]] = field(default_factory=dict)
    """REFERENCES of tables.py: the columns of each table that lookup() reads, by its name."""
    reference_rows: int = 100_000
    """A reference with at most this many rows is read whole, and all its rows pass through the
    driver. lookup() looks keys up in a larger one. For a join: the most rows that it may have."""
    shuffle_partitions: int = 8
    """For jobs with state: partitions of the state. You need no more than the executors have cores.
    You cannot change it without `rewind`."""
    large_state_bytes: int = 512 * 1024**2
    """For jobs with state: the log and an alert warn above this size of the state in all executors
    together: RocksDB's files on their disks, or their memory with `state_store = "memory"`. A start
    reads all files from Cypress. Measured: 45 bytes for each id of `deduplicate` (uuids), 20 for
    each key of `aggregate` (numbers), so the default is 12 or 27 million of them."""
    most_failures: int = 5
    """The job ends after this many failures without a batch in between. On the cluster, YTsaurus
    also restarts the operation (spark.ytsaurus.driver.maxFailures)."""
    failure_period_seconds: float = 600.0
    """While no row waits, failures older than this are forgotten."""
    first_pause_seconds: float = 1.0
    """The pause before the first restart. It doubles with every failure that counts."""
    longest_pause_seconds: float = 60.0
    """The longest pause before a restart."""
    queue_count: int = 1
    """How many queues the configuration names. The runtime sets it. Do not set it in job.py."""

    def __post_init__(self) -> None:
        """Reject rows of the queues whose sequence value is null: nothing says how new they are."""
        if isinstance(self.merge, Mapping) and isinstance(self.reject, Mapping):
            rules = [rule for rule in self.merge.values() if isinstance(rule, Newest)]
            implied = dict(chain.from_iterable(map(self._unordered, rules)))
            object.__setattr__(self, "reject", {**self.reject, **implied})

    def _unordered(self, rule: Newest) -> Iterator[tuple[str, str]]:
        """Yield reasons to reject rows, and conditions, if QUEUE allows null or NaN there."""
        for column in self.queue:
            name, type_, is_required = _parts(column)
            if name == rule.sequence_by and not is_required:
                yield f"{name} is null", f"`{name}` IS NULL"
            if name == rule.sequence_by and type_ in _WITH_NAN:
                yield f"{name} is NaN", f"isnan(`{name}`)"

    def reading(self, queues: int) -> Job:
        """Return the job as it reads that many queues."""
        return self if self.queue_count == queues else replace(self, queue_count=queues)

    @property
    def kind(self) -> Processing:
        """The needs of the job's processing, without state where the table keeps the totals."""
        kind = PROCESSINGS[self.processing]
        if kind.has_totals_in_table and "output" in self.totals:
            return replace(kind, state="", output_mode="append")
        return kind

    @property
    def totals(self) -> tuple[str, ...]:
        """The outputs whose tables add up what is written (`aggregate=` in tables.py)."""
        return tuple(name for name, listed in self.outputs.items() if is_totals(listed))

    @property
    def archives(self) -> Mapping[str, Archive]:
        """The outputs with a static table per period."""
        return self.static if isinstance(self.static, Mapping) else {}

    @property
    def arrivals(self) -> tuple[str, ...]:
        """The archives whose periods are by the time at which rows were written to the queues."""
        return tuple(name for name, archive in self.archives.items() if archive.by is None)

    @property
    def snapshots(self) -> Sequence[str]:
        """The outputs with a static table per micro-batch."""
        return () if isinstance(self.static, Mapping) else self.static

    @property
    def deletions(self) -> Mapping[str, Newest]:
        """The outputs that remember their deletes in a table next to them, with their rule."""
        return {name: rule for name, rule in self.merge.items() if remembers(rule)}  # type: ignore[misc]

    @property
    def package(self) -> str:
        """The Python package of transform()."""
        return self.transform.__module__.partition(".")[0]

    @property
    def rejects_late(self) -> bool:
        """Whether rows behind the watermark go to "rejected"."""
        return self.late == REJECT and self.kind.is_stateful

    @property
    def judges(self) -> bool:
        """Whether a condition is evaluated on each row, or a row's position is kept."""
        return self.rejects or bool(self.warn)

    @property
    def rejects(self) -> bool:
        """Whether the job writes rows to "rejected"."""
        return bool(self.reject) or self.rejects_late or bool(self.archives)

    @cached_property
    def queue_columns(self) -> tuple[Column, ...]:
        """QUEUE of tables.py. Raises JobError for an entry that is not a column."""
        return resolved("QUEUE", self.queue)

    @cached_property
    def output_columns(self) -> Mapping[str, tuple[Column, ...]]:
        """OUTPUTS of tables.py. Raises JobError for an entry that is not a column."""
        given = rejected_columns(self.queue_count)
        return {
            name: given if listed is REJECTED_COLUMNS else resolved(f"OUTPUTS[{name!r}]", listed)
            for name, listed in self.outputs.items()
        }

    @cached_property
    def reference_columns(self) -> tuple[Column, ...]:
        """REFERENCE of tables.py, empty without one. Raises JobError for a wrong entry."""
        return resolved("REFERENCE", self.reference) if self.reference else ()

    @cached_property
    def lookup_columns(self) -> Mapping[str, tuple[Column, ...]]:
        """REFERENCES of tables.py, by name. Raises JobError for a wrong entry."""
        listed = self.references.items()
        return {name: resolved(f"REFERENCES[{name!r}]", columns) for name, columns in listed}


def _parts(column: Described) -> tuple[object, object, object]:
    """Return name, type and whether a column is required, as far as tables.py tells."""
    if isinstance(column, Column):
        return column.name, column.type, column.required
    return column if isinstance(column, tuple) and len(column) == 3 else ("", None, True)


class Guarantee(ABC):
    """A delivery guarantee as the runtime uses it; one class in guarantees/ for each.

    The defaults are those without SPYT's transaction. Each ``modify_rows`` is a transaction of its
    own then, and the outputs of a batch are visible at once. After them one transaction of the
    runtime's own writes the ledger's head and moves the consumer; a batch that was cut off before
    runs again from its first row. SPYT moves the consumer to the same row a batch late.
    """

    name: str
    acceptable: Sequence[str] = ()
    """Names that `accept` in the configuration may list: refusals that a user can waive."""
    in_transaction = False
    """Whether outputs and consumer offsets commit in one transaction, which SPYT opens."""
    position: Mapping[str, str] = {}
    """Columns that a source adds to the queue's own: name -> SPYT's name."""

    @abstractmethod
    def key(self, queues: int) -> tuple[str, ...] | None:
        """Return the key columns that every output has with that many queues; None: any."""

    @abstractmethod
    def output_attributes(
        self, columns: Sequence[Column], settings: Settings, tablets: Mapping[str, int]
    ) -> dict[str, Any]:
        """Return the attributes of a new output table; ``tablets`` counts those of each queue."""

    def admit(self, rows: DataFrame, settings: Settings) -> None:  # noqa: B027
        """Raise JobError for a stream whose plan breaks the guarantee."""

    def admit_output(self, rows: DataFrame, settings: Settings) -> None:  # noqa: B027
        """Raise JobError for an output of outputs() whose plan breaks the guarantee."""

    def fenced(self, rows: DataFrame) -> DataFrame:
        """Return the rows of a micro-batch as they may be written."""
        return rows  # what a task has written before it failed may repeat

    def write_batch(self, settings: Settings, tablets: Mapping[str, int]) -> int:
        """Return the rows per ``modify_rows``, far below those that a transaction may touch."""
        return 10_000

    def sizing_problem(
        self, settings: Settings, tablets: Mapping[str, int], output_tablets: int
    ) -> str | None:
        """Return why full batches could hit the limit of a tablet; None when they cannot."""
        return None


@dataclass(frozen=True)
class JobContext:
    """A job on a cluster; made once for a command and handed to every function below it."""

    client: Client
    """ytsaurus-client, with the proxy and the token of the configuration."""
    settings: Settings
    """The configuration: one file of config/."""
    job: Job
    """JOB of job.py."""
    guarantee: Guarantee
    """The class of the job's guarantee."""
    config: Path = DEFAULT_CONFIG
    """The file of the settings, as a person has named it."""
    words: str = ""
    """How `python -m ytstream_tools` was told which job it is, where there is no repository."""
    is_sized: bool = False
    """Whether the runtime has chosen `dyn_batch_size`."""

    def __post_init__(self) -> None:
        """Tell the job how many queues it reads."""
        object.__setattr__(self, "job", self.job.reading(len(self.settings.queues)))

    @property
    def values(self) -> dict[str, Any]:
        """The values that spark_conf.filled() puts into braces."""
        return conf_values(self.settings, self.job)

    @property
    def write_rows(self) -> int | None:
        """The most rows of a write request of our own connector for each tablet, if that is set.

        What the runtime chooses is small for SPYT's writer, whose requests go whole to one tablet
        at random (guarantees/sizing.py). Ours names a tablet in each row.
        """
        return None if self.is_sized else self.settings.dyn_batch_size

    @cached_property
    def output_tablets(self) -> Mapping[str, int]:
        """The number of tablets of each output without a key.

        The cluster is asked once for a context, and each query has a context of its own. After a
        reshard to fewer tablets a write fails, and the next query asks again.
        """
        columns = self.job.output_columns
        return {
            name: int(self.client.get(f"{path}/@tablet_count"))
            for name, path in self.settings.outputs.items()
            if name not in self.job.static and not key_of(columns[name])
        }

    def session_settings(self, spark: str) -> dict[str, str]:
        """Return all settings of the job's session on a cluster, the user's own among them.

        ``spark`` is the version of Spark.
        """
        return self.settings.spark_confs | own_confs(self.job, self.settings, spark)

    def make(self, target: str) -> str:
        """Return how a person calls a target for this cluster: defaults of targets differ."""
        if not self.words:
            return f"`make {target} CONFIG={shlex.quote(str(self.config))}`"
        if target in LIGHT:
            return f"`python -m ytstream_tools {target} {self.words}`"
        return f"`make {target}` in the job's repository"


Connection = JobContext
"""Tests in repositories generated by 1.0.0 import this name."""


def own_confs(job: Job, settings: Settings, spark: str) -> dict[str, str]:
    """Return the settings that a job's session has without the user's own."""
    store = state_store_of(settings, job.kind.is_stateful)
    wanted = spark_conf.of_session(job.guarantee, state_store=store, spark=spark)
    return spark_conf.filled(wanted, conf_values(settings, job))


def conf_values(settings: Settings, job: Job) -> dict[str, Any]:
    """Return the values that spark_conf.filled() puts into braces."""
    is_rocksdb = state_store_of(settings, job.kind.is_stateful) == ROCKSDB
    sizes = sizes_of(settings)
    return {
        **vars(settings),
        **vars(job),
        "checkpoint_uri": settings.checkpoint_uri if job.kind.is_stateful else ON_DISK,
        "alias": settings.alias,
        "files": settings.files,
        "python": settings.submit.python,
        "java": settings.submit.java,
        "executor_failures": MOST_FAILURES // sizes.executors,
        "state_memory_mib": state_memory_mib(settings) if is_rocksdb else None,
        "executor_overhead": executor_overhead(settings, sizes) if is_rocksdb else None,
    }
