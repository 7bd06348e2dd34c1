"""What maintenance does to a dynamic table: it is unmounted, perhaps changed, and mounted again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import lit

from ytstream import Job
from ytstream.schema.columns import Column

Change = Callable[[Any, str], None]
"""What happens to a table while it is unmounted: its client and its path."""


def nothing(client: Any, path: str) -> None:
    """Change nothing."""


def one_more_tablet(client: Any, path: str) -> None:
    """Reshard the table: a sorted one into two tablets, an ordered one into one more."""
    if client.get(f"{path}/@sorted"):
        is_text = client.get(f"{path}/@schema")[0]["type"] in ("string", "utf8")
        client.reshard_table(path, [[], ["m" if is_text else 1]], sync=True)
    else:
        count = client.get(f"{path}/@tablet_count")
        client.reshard_table(path, tablet_count=count + 1, sync=True)


_ADDED = Column("added_later", "string")


def one_more_column(client: Any, path: str) -> None:
    """Alter the table: it has one more column, which may be empty."""
    schema = client.get(f"{path}/@schema")
    schema.append({"name": _ADDED.name, "type": _ADDED.type})
    client.alter_table(path, schema=schema)


def with_column(job: Job) -> Job:
    """Return the job with the column of one_more_column() in its first output, empty."""

    def transform(*rows: DataFrame) -> DataFrame:
        return job.transform(*rows).withColumn(_ADDED.name, lit(None).cast(_ADDED.type))

    first = next(iter(job.outputs))
    outputs = {**job.outputs, first: [*job.outputs[first], _ADDED]}
    return replace(job, outputs=outputs, transform=transform)


def remount(client: Any, path: str, change: Change = nothing) -> None:
    """Unmount the table, change it, and mount it."""
    client.unmount_table(path, sync=True)
    change(client, path)
    client.mount_table(path, sync=True)
