"""One version of a job over given batches: on a minicluster of its own, from an empty state."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from minicluster import testing as minicluster
from ytstream.cluster.client import Client, connect
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import REJECTED, JobContext
from ytstream.schema.table_schema import table_schema
from ytstream.settings import toml_file
from ytstream.settings.job_settings import Settings, load
from ytstream.version import version_of

from ..demo import demo_tables
from ..demo.crash_scenario import drained
from ..demo.job_process import PATIENCE_SECONDS, JobProcess, run_command, running
from .batch_rows import PARTITION, QUEUE, CapturedBatch, CapturedRow
from .captured_references import CapturedReferences
from .differences import OutputRows

_LEFT_OUT = (
    "account", "tablet_cell_bundle", "medium", "pool", "proxy_role", "output_retention",
    "submit", "spark",
)  # fmt: skip
"""What belongs only to the real cluster."""
_SIZES = ("spark.driver.", "spark.executor.", "spark.ytsaurus.", "spark.dynamicAllocation.")
"""Settings of Spark that size what runs on the cluster."""
_TIMES = {REJECTED: ("time",)}
"""Columns that the runtime fills with the time at which it runs."""


@dataclass(frozen=True)
class RehearsedVersion:
    """The files of one version of the job, and what it is called."""

    name: str
    package: str
    root: Path
    config: Path
    """Its configuration, or that of the working tree."""
    python: str = sys.executable
    """The interpreter that runs it: its environment has Spark and the runtime."""


def spark_of(python: str) -> str:
    """Return the version of Spark in the environment of an interpreter.

    Raises JobError where there is none.
    """
    if python == sys.executable:
        return version_of("pyspark")
    code = "from importlib.metadata import version; print(version('pyspark'))"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    except (subprocess.CalledProcessError, OSError):
        raise JobError(
            f"{python} has no Spark",
            "name the interpreter of an environment that `make setup` made, such as "
            "../old/.venv/bin/python",
            code=ErrorCode.USAGE,
        ) from None
    return done.stdout.strip()


@dataclass(frozen=True)
class ClusterInput:
    """What was read from the real cluster."""

    parts: Sequence[CapturedBatch]
    reference: Sequence[CapturedRow]
    tables: Mapping[str, Mapping[str, Any]]
    """Path of a queue or of a reference -> the attributes with which it is made."""
    references: CapturedReferences = field(default_factory=dict)
    """What lookup() reads."""


def source(
    context: JobContext,
    parts: Sequence[CapturedBatch],
    reference: Sequence[CapturedRow],
    references: CapturedReferences,
) -> ClusterInput:
    """Return the rows with the schemas of their tables."""
    client, settings, found = context.client, context.settings, {}
    queues = {str(row[QUEUE]) for part in parts for row in part.rows}
    for path in sorted({*queues, *settings.queues}):
        found[path] = client.get(f"{path}/@", attributes=["schema", "tablet_count"])
    if settings.reference is not None:
        found[settings.reference] = client.get(f"{settings.reference}/@", attributes=["schema"])
    for name, path in settings.references.items():
        columns = context.job.lookup_columns[name]
        found[path] = {"schema": table_schema(columns).to_yson_type()}
    return ClusterInput(parts, reference, found, references)


def replay(
    version: RehearsedVersion, given: ClusterInput, context: JobContext, folder: Path
) -> dict[str, OutputRows]:
    """Run the version over the batches, one after the other; return its outputs.

    Raises JobError when it ends before.
    """
    log = folder / f"{version.root.name}.log"
    with minicluster.start() as cluster:
        config = folder / f"{version.root.name}.toml"
        config.write_text(toml_file.dump(_values(version, given, cluster.http)), encoding="utf-8")
        settings = load(config, {})
        client = connect(settings, shell={})  # the token is for the real cluster
        _make(client, settings, given)
        words, package = ("--config", str(config)), version.package
        python = version.python
        run_command(package, cluster.http, version.root, "provision", *words, python=python)
        here = JobContext(client, settings, context.job, context.guarantee)
        with running(package, cluster.http, log, version.root, *words, python=python) as process:
            is_drained = drained(here)
            for part in given.parts:
                _send(client, part)
                deadline = time.monotonic() + PATIENCE_SECONDS
                while not is_drained():
                    if process.exit_code is not None or time.monotonic() > deadline:
                        raise _ended(version, f"in the rows of batch {part.name}", process)
                    time.sleep(0.1)
            if process.stop():
                raise _ended(version, "at its stop", process)
        ledger, outputs = settings.ledger, settings.outputs
        return {name: _read(client, ledger, name, path) for name, path in outputs.items()}


def _values(version: RehearsedVersion, given: ClusterInput, proxy: str) -> dict[str, Any]:
    """Return the version's configuration for the minicluster."""
    values = dict(toml_file.read(version.config).values)
    spark = load(version.config, {}).spark_confs
    parts = (len(part.rows) for part in given.parts)
    most = max(parts, default=1)
    return {
        **{name: value for name, value in values.items() if name not in _LEFT_OUT},
        "proxy": proxy,
        "allow_env_proxy": False,
        "create_queues": True,  # one that the job read no more when the batches ran
        "start_from": "earliest",
        "on_data_loss": "fail",
        "trigger_seconds": 0.2,
        "reject_limit": 1.0,
        "max_rows_per_partition": max(most, int(values.get("max_rows_per_partition", 20_000))),
        "spark": {key: value for key, value in spark.items() if not key.startswith(_SIZES)},
    }


def _make(client: Client, settings: Settings, given: ClusterInput) -> None:
    """Make the queues, and the reference with its rows, as they are on the real cluster."""
    for path, attributes in given.tables.items():
        client.create("table", path, recursive=True, attributes={"dynamic": True, **attributes})
        client.mount_table(path, sync=True)
    if settings.reference is not None and given.reference:
        client.insert_rows(settings.reference, [dict(row) for row in given.reference])
    for name, rows in given.references.items():
        if rows and name in settings.references:  # the other version may have others
            client.insert_rows(settings.references[name], [dict(row) for row in rows])


def _send(client: Client, part: CapturedBatch) -> None:
    """Insert the rows of a batch at once, into the partitions that they were in."""
    by_queue: dict[str, list[CapturedRow]] = {}
    for row in part.rows:
        values = {name: value for name, value in row.items() if not name.startswith("$")}
        by_queue.setdefault(str(row[QUEUE]), []).append({**values, PARTITION: row[PARTITION]})
    with cast(Any, client).Transaction(type="tablet"):
        for path, rows in by_queue.items():
            for start in range(0, len(rows), demo_tables.CHUNK):
                client.insert_rows(path, rows[start : start + demo_tables.CHUNK])


def _read(client: Client, ledger: str, name: str, path: str) -> OutputRows:
    """Return the rows of an output with its own columns; a static one has those of all tables."""
    if client.get(f"{path}/@type") == "map_node":
        tables = demo_tables.static_tables(client, ledger, name, path)
        return OutputRows([row for table in tables for row in client.read_table(table)])
    columns = [c for c in client.get(f"{path}/@schema") if not str(c["name"]).startswith("$")]
    names = [str(c["name"]) for c in columns if c["name"] not in _TIMES.get(name, ())]
    key = [str(c["name"]) for c in columns if c.get("sort_order")]
    listed = ", ".join(f"[{name}]" for name in names)
    return OutputRows(list(client.select_rows(f"{listed} from [{path}]")), key)


def _ended(version: RehearsedVersion, where: str, process: JobProcess) -> JobError:
    return JobError(
        f"{version.name} did not get through {where}:\n{process.tail()}",
        "`capture` saves that batch as a test",
        code=ErrorCode.COMMAND_FAILED,
    )
