"""Prints the job as the cluster sees it: its tables and its settings."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

from yt.yson import yson_to_json

from ytstream.job import Job, conf_values
from ytstream.ledger import ledger_rows
from ytstream.schema.changes import deleted_columns, deleted_path
from ytstream.schema.columns import Column, is_totals
from ytstream.schema.table_schema import table_schema
from ytstream.settings import spark_conf
from ytstream.settings.job_settings import Settings
from ytstream.settings.resources import sizes_of
from ytstream.settings.state_store import state_store_of
from ytstream.settings.submit_section import SubmitSection
from ytstream.text_table import table
from ytstream.version import version_of

_UNSET = {
    "java": "/opt/jdk and the number of the Java that submits",
    "title": "SPYT's",
}
"""What holds where a setting of [submit] has no value; "none" for the others."""


def tables(job: Job, settings: Settings) -> str:
    """Return the schema of each table as YTsaurus prints it, ``unique_keys`` and all."""
    described: list[tuple[str, str, tuple[Column, ...]]] = [
        *(("queue", path, job.queue_columns) for path in settings.queues),
        *((name, settings.outputs[name], list_) for name, list_ in job.output_columns.items()),
    ]
    for name, rule in job.deletions.items():
        columns = deleted_columns(job.output_columns[name], rule)
        described.append((deleted_path(name), deleted_path(settings.outputs[name]), columns))
    if settings.reference is not None:
        described.append(("reference", settings.reference, job.reference_columns))
    described.append(("ledger", settings.ledger, ledger_rows.COLUMNS))
    return "\n\n".join(
        _table(name, path, columns, is_static=name in job.static)
        for name, path, columns in described
    )


def conf_table(job: Job, settings: Settings) -> str:
    """Return a table of every setting, its value and its reason."""
    values = conf_values(settings, job)
    values["dyn_batch_size"] = settings.dyn_batch_size or "(by the queues' size)"
    store, spark = state_store_of(settings, job.kind.is_stateful), version_of("pyspark")
    parts = {
        "the Spark session": (
            *spark_conf.of_session(job.guarantee, state_store=store, spark=spark),
        ),
        "a driver on this machine": spark_conf.LOCAL,
        "spark-submit": spark_conf.SUBMIT,
        "the reader of each queue": spark_conf.READER,
        "the writer": (*spark_conf.WRITER[job.kind.is_stateful], *spark_conf.SINK),
    }
    rows = [
        (part, conf.key, value, conf.reason)
        for part, listed in parts.items()
        for conf in listed
        if (value := spark_conf.filled(iter([conf]), values).get(conf.key)) is not None
    ]
    sizes = sizes_of(settings).given
    rows += [
        ("spark-submit", size.key, sizes[size.name].value, f"Given by {sizes[size.name].where}.")
        for size in spark_conf.SIZES
    ]
    return table(("of", "setting", "value", "reason"), rows)


def submit_table(settings: Settings, origins: Mapping[str, Path]) -> str:
    """Return a table of every setting of [submit], its value, and which file gives it."""
    sizes, rows = sizes_of(settings).given, []
    for setting in fields(SubmitSection):
        name, value = f"submit.{setting.name}", getattr(settings.submit, setting.name)
        if setting.name in sizes:
            value, where = sizes[setting.name]
            name = where.replace("[", "").replace("] ", ".")  # it may stand under [spark]
        elif setting.name == "alias":
            value = settings.alias
        unset = _UNSET.get(setting.name, "none")
        shown = unset if value in (None, (), {}) else _shown(value)
        files = {str(file) for key, file in origins.items() if f"{key}.".startswith(f"{name}.")}
        under = "[spark] of " if name.startswith("spark.") else ""
        rows.append((setting.name, shown, under + (", ".join(sorted(files)) or "the default")))
    return table(("[submit]", "value", "given by"), rows)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _table(name: str, path: str, columns: tuple[Column, ...], *, is_static: bool) -> str:
    schema = table_schema(columns).to_yson_type()
    attributes = ", ".join(f"{key}={value}" for key, value in sorted(schema.attributes.items()))
    kind = f"{'sorted' if any(column.key for column in columns) else 'ordered'} dynamic table"
    if is_static:
        kind = "folder of static tables"
    rows = [
        (
            str(column["name"]),
            json.dumps(yson_to_json(column["type_v3"]), ensure_ascii=False).strip('"'),
            str(column.get("sort_order", "")),
            *([str(column.get("aggregate", ""))] if is_totals(columns) else []),
        )
        for column in schema
    ]
    header = ("column", "type", "sort order", *(["aggregate"] if is_totals(columns) else []))
    return f"{name} {path}: {kind}, {attributes}\n" + table(header, rows)
