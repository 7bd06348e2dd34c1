"""The references of a running job: tables that lookup() reads whole, or by the keys of a batch.

A table that is read whole is read when a query starts: see reference_table.py. For lookups by key
only its definition is read then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from yt.common import YtError

from ..cluster.client import facts, first_line
from ..connector import key_lookup
from ..connector.compile_java import unavailable
from ..declaration import broadcast_lookup
from ..declaration.lookups import KEYS, TABLE, Lookup
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import JobContext
from ..ledger.ledger_rows import LookedUp
from ..log import say, warn
from ..provisioning.references import ASKED, KEPT_BY, lost, unfit
from ..schema.columns import Column
from . import reference_table

_FOUND = "__ytstream_found"
"""Named in front of the column that says whether a row was found, while nobody asks for it."""


@dataclass(frozen=True)
class WholeTable:
    """A reference as it was read."""

    rows: DataFrame
    table: str
    timestamp: int


@dataclass
class JobReferences:
    """What lookup() reads in one query."""

    spark: SparkSession
    context: JobContext
    former: JobReferences | None = None
    """Those of the query before: a running job does not end because one cannot be read now."""
    at: Mapping[str, LookedUp] = field(default_factory=dict)
    """What a former batch has looked up, to look up the same again; empty: as of now."""
    whole: dict[str, WholeTable] = field(default_factory=dict)
    """References that were read whole."""
    keyed: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Those that are looked up by key, with the attributes of their tables when the query started.
    """

    @property
    def columns(self) -> Mapping[str, tuple[Column, ...]]:
        """The columns of each reference."""
        return self.context.job.lookup_columns

    def joined(self, rows: DataFrame, lookup: Lookup) -> DataFrame:
        """Return the rows with the columns of the reference."""
        whole = self._whole(lookup)
        if whole is not None:
            return broadcast_lookup.joined(rows, whole.rows, lookup)
        name, found = lookup.reference, lookup.found or _FOUND
        key = [column for column in self.columns[name] if column.key]
        timestamp = self.at[name].timestamp if name in self.at else 0
        cache_bytes = self.context.settings.reference_cache_mb << 20
        made = key_lookup.looked_up(
            rows,
            name,
            self._path(name),
            lookup.on,
            key,
            lookup.columns,
            found,
            cache_bytes,
            self.keyed[name],
            timestamp,
        )
        if lookup.how == "inner":
            made = made.filter(f"`{found}`")
        return made if lookup.found else made.drop(found)

    def used(self) -> Iterator[tuple[str, str]]:
        """Yield name and way of each reference that was asked for."""
        yield from ((name, TABLE) for name in sorted(self.whole))
        yield from ((name, KEYS) for name in sorted(self.keyed))

    def looked_up(self, found: Iterator[key_lookup.KeysLookedUp]) -> dict[str, LookedUp]:
        """Return what a batch has looked up, for the ledger, by reference."""
        whole = {
            name: LookedUp(TABLE, one.table, one.timestamp) for name, one in self.whole.items()
        }
        return whole | {
            one.name: LookedUp(
                by=KEYS,
                table=one.table,
                timestamp=one.timestamp,
                rows=one.rows,
                keys=one.keys,
                missing=one.missing,
                milliseconds=one.milliseconds,
                hits=one.hits,
            )
            for one in found
        }

    def free_former(self) -> None:
        """Free the rows of the query before, once this one has its own."""
        kept = {id(one) for one in self.whole.values()}
        for one in self.former.whole.values() if self.former else ():
            if id(one) not in kept:
                one.rows.unpersist()
        self.former = None

    def verify_kept(self) -> None:
        """Raise JobError unless the tables are sure to have the rows that were looked up."""
        for name, one in self.at.items():
            found = facts(self.context.client, self._path(name), KEPT_BY)
            if why := "it was removed" if found is None else lost(found, one.timestamp):
                raise JobError(
                    f"the reference {name} may not have the rows that the batch has looked up: "
                    f"{why} (table #{one.table})",
                    "another value of it would make another batch of the same rows",
                    code=ErrorCode.REFERENCE,
                )

    def _path(self, name: str) -> str:
        known = self.at.get(name)
        return f"#{known.table}" if known else self.context.settings.references[name]

    def _whole(self, lookup: Lookup) -> WholeTable | None:
        """Return the table if it is read whole; None if it is looked up by key.

        Raises JobError where the way that was chosen is not possible.
        """
        name = lookup.reference
        by = self.at[name].by if name in self.at else lookup.by
        is_open = by == TABLE or (by is None and name not in self.keyed)
        if by != KEYS and (name in self.whole or (is_open and self._read(name, by))):
            return self.whole[name]
        self._use_keys(name)
        return None

    def _read(self, name: str, by: str | None) -> bool:
        """Read the table whole; False if it is too large for that, or has types that are not read.

        Raises JobError if it has to be read.
        """
        job, path = self.context.job, self._path(name)
        columns = job.lookup_columns[name]
        if by is None and reference_table.unread(columns):
            return False
        try:
            self.whole[name] = self._as_it_is(name, path)
        except reference_table.TooLargeError:
            if by is None:
                return False
            raise
        except (YtError, OSError, JobError) as error:
            known = self.former.whole.get(name) if self.former else None
            if known is None:
                raise
            warn(f"continuing with the reference {name} as last read: {first_line(error)}")
            self.whole[name] = known
        return True

    def _as_it_is(self, name: str, path: str) -> WholeTable:
        client, job = self.context.client, self.context.job
        known = self.at.get(name)
        timestamp = known.timestamp if known else int(client.generate_timestamp())
        columns = job.lookup_columns[name]
        table, rows = reference_table.read_at(
            self.spark, client, path, columns, job.reference_rows, timestamp,
            f"REFERENCES[{name!r}]", for_lookup=True,
        )  # fmt: skip
        return WholeTable(rows, table, timestamp)

    def _use_keys(self, name: str) -> None:
        """Raise JobError unless keys can be looked up in the table."""
        if name in self.keyed:
            return
        path = self._path(name)
        if problem := unavailable(self.spark):
            raise JobError(
                f"the reference {name} cannot be looked up by key here, since the Java of lookup() "
                f"cannot be compiled: {problem}",
                "let the job run on a Spark that carries Janino, as each release does; or use "
                'by="table" with reference_rows in job.py above the size of the table',
                code=ErrorCode.NOT_INSTALLED,
            )
        found: Mapping[str, Any] = self.context.client.get(f"{path}/@", attributes=[*ASKED])
        if problems := [*unfit(self.columns[name], found)]:
            raise JobError(
                f"the reference {name} ({path}) cannot be looked up by key: {'; '.join(problems)}",
                'correct REFERENCES in tables.py or the table; or use by="table"',
                code=ErrorCode.REFERENCE,
            )
        say(f"reference {path}: by key, each micro-batch looks up its own keys of {name}")
        self.keyed[name] = found
