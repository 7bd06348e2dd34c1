"""A Grafana dashboard for what `metrics` serves: what a person on call looks for comes first."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .alert_limits import (
    LATE_SECONDS,
    REJECTED_SHARE,
    STALLED_SECONDS,
    STARTS_PER_HOUR,
    TOTAL_SHARE,
    UNSEALED_SECONDS,
)

_SCHEMA = 39
"""Of the dashboard's JSON (Grafana, "Dashboard JSON model"): the version of its schema."""
_SELF = 'app=~"$app"'
_WIDTH, _HEIGHT = 8, 8
_CHART, _WORDS, _TABLE = "timeseries", "stat", "table"
"""Grafana's names of the panels that are not a chart."""
_JOB = "ytstream_job_info{SELF}"


@dataclass(frozen=True)
class Panel:
    """One panel: its queries by the name of their line."""

    title: str
    description: str
    """What a person should read from it, and when to act."""
    unit: str
    """Grafana's name of the unit."""
    queries: Sequence[tuple[str, str]]
    is_signed: bool = False
    """Whether a figure may be below 0: the axis of the others begins there."""
    limit: float | None = None
    """Above this an alert fires; None: no alert has a limit for this figure."""
    kind: str = _CHART


PANELS: Sequence[Panel] = (
    Panel(
        "State", "What the last process of the job is doing. `failed` and `killed` need a person.",
        "short", (("{{app}}: {{state}}", "ytstream_process_state{SELF} == 1"),), kind=_WORDS,
    ),
    Panel(
        "How long the first row has waited",
        "Rows wait at most for one trigger and one batch. Above the line, an alert fires.",
        "s", (("{{app}}", "max by (app) (ytstream_lag_seconds{SELF})"),), limit=LATE_SECONDS,
    ),
    Panel(
        "Where it runs", "Operation, commit and runbook of each job. The links are in the table.",
        "short", (("", _JOB),), kind=_TABLE,
    ),
    Panel(
        "Rows that wait", "If it grows, `make why` measures why.",
        "short", (("{{app}}", "sum by (app) (ytstream_lag_rows{SELF})"),),
    ),
    Panel(
        "Share of the tablet with most waiting rows",
        "One task reads a tablet. Near 1 with several tablets, more executors do not help.",
        "percentunit",
        (("{{app}}", "max by (app) (ytstream_lag_rows{SELF})"
                     " / (sum by (app) (ytstream_lag_rows{SELF}) > 0)"),),
    ),
    Panel(
        "Seconds since the last batch", "While rows wait, an alert fires above the line.",
        "s", (("{{app}}", "ytstream_head_age_seconds{SELF}"),), limit=STALLED_SECONDS,
    ),
    Panel(
        "Rows per second: in, read, written",
        "If `in` stays above `read`, rows wait longer and longer.",
        "rowsps", (
            ("in {{app}}", "sum by (app) (rate(ytstream_queue_rows_total{SELF}[5m]))"),
            ("read {{app}}", "rate(ytstream_rows_read_total{SELF}[5m])"),
            ("{{output}} {{app}}", "rate(ytstream_rows_written_total{SELF}[5m])"),
            ("keys {{change}}: {{output}} {{app}}", "rate(ytstream_keys_total{SELF}[5m])"),
        ),
    ),
    Panel(
        "Seconds per batch", "A transactional batch has 20 to 30 s. A longer one runs again.",
        "s", (
            ("mean {{app}}", "rate(ytstream_batch_seconds_total{SELF}[15m])"
                             " / rate(ytstream_batches_total{SELF}[15m])"),
            ("last {{app}}", "ytstream_last_batch_seconds{SELF}"),
        ),
    ),
    Panel(
        "Parts of the last batch",
        "`transform` reads and computes the rows, `write` waits for the cluster. `commit` is the "
        "one before.",
        "s", (("{{part}} {{app}}", "ytstream_last_batch_part_seconds{SELF}"),),
    ),
    Panel(
        "Starts in an hour", "A failed batch starts the query again. Above the line, an alert "
        "fires.",
        "short", (("{{app}}", "delta(ytstream_epoch{SELF}[1h])"),), limit=STARTS_PER_HOUR,
    ),
    Panel(
        "Share of rejected and late rows", "Of the rows read. Above the line, an alert fires.",
        "percentunit", (
            ("rejected {{app}}", "sum by (app) (rate(ytstream_rows_rejected_total{SELF}[15m]))"
                                 " / on (app) (rate(ytstream_rows_read_total{SELF}[15m]) > 0)"),
            ("late {{app}}", "rate(ytstream_rows_late_total{SELF}[15m])"
                             " / on (app) (rate(ytstream_rows_read_total{SELF}[15m]) > 0)"),
        ), limit=REJECTED_SHARE,
    ),
    Panel(
        "Rejected rows, warnings, rows without a time",
        "Rejected rows are in the output `rejected`, with the row as JSON. Rows of WARN are kept.",
        "rowsps", (
            ("{{reason}} {{app}}", "rate(ytstream_rows_rejected_total{SELF}[15m])"),
            ("warned: {{reason}} {{app}}", "rate(ytstream_rows_warned_total{SELF}[15m])"),
            ("no time {{app}}", "rate(ytstream_rows_without_event_time_total{SELF}[15m])"),
        ),
    ),
    Panel(
        "Share of lookups that find nothing", "By reference, of the rows that have a key.",
        "percentunit", (
            ("{{reference}} {{app}}", "rate(ytstream_lookup_missing_total{SELF}[15m])"
                                      " / (rate(ytstream_lookup_rows_total{SELF}[15m]) > 0)"),
        ),
    ),
    Panel(
        "Lookups by key",
        "Rows, keys asked for and cached rows per second, and seconds of waiting.",
        "short", (
            ("rows of {{reference}} {{app}}", "rate(ytstream_lookup_rows_total{SELF}[15m])"),
            ("keys of {{reference}} {{app}}", "rate(ytstream_lookup_keys_total{SELF}[15m])"),
            ("cached of {{reference}} {{app}}", "rate(ytstream_lookup_hits_total{SELF}[15m])"),
            ("waiting for {{reference}} {{app}}",
             "rate(ytstream_lookup_seconds_total{SELF}[15m])"),
        ),
    ),
    Panel(
        "Rows read, less those written by a map",
        "0 unless transform() drops rows. Anything else is a lost or duplicated row.",
        "short", (("{{app}}", "ytstream_read_minus_written_rows{SELF}"),), is_signed=True, limit=0,
    ),
    Panel(
        "How long a period of an archive waits for its table",
        "Its rows are staged and safe. `make why` names what holds it. Above the line, an alert "
        "fires.",
        "s", (
            ("{{output}} {{app}}", "ytstream_archive_overdue_seconds{SELF}"),
            ("complete until {{output}} {{app}}",
             "time() - ytstream_archive_complete_until_timestamp_seconds{SELF}"),
        ), limit=UNSEALED_SECONDS,
    ),
    Panel(
        "Staged for archives", "Rows that are in no table yet, and the tables that they become.",
        "short", (
            ("rows of {{output}} {{app}}", "ytstream_archive_staged_rows{SELF}"),
            ("bytes of {{output}} {{app}}", "ytstream_archive_staged_bytes{SELF}"),
            ("tables of {{output}} {{app}}", "ytstream_archive_tables_waiting{SELF}"),
        ),
    ),
    Panel(
        "Rows of the state", "Of jobs with state. It follows the keys that are open.",
        "short", (("{{app}}", "ytstream_state_rows{SELF}"),),
    ),
    Panel(
        "What the state store takes", "Memory is mostly a cache: it grows up to its limit.",
        "bytes", (
            ("memory {{app}}", "ytstream_state_memory_bytes{SELF}"),
            ("files {{app}}", "ytstream_state_file_bytes{SELF}"),
        ),
    ),
    Panel(
        "Seconds of the last batch's tasks in the state store", "Summed over all tasks.",
        "s", (("{{app}}", "ytstream_state_store_seconds{SELF}"),),
    ),
    Panel(
        "Size of the checkpoint", "A start reads all of it.",
        "bytes", (("{{app}}", "ytstream_state_checkpoint_bytes{SELF}"),),
    ),
    Panel(
        "How far the watermark is behind", "Rows that are older than the watermark are late.",
        "s", (("{{app}}", "time() - ytstream_watermark_timestamp_seconds{SELF}"),),
    ),
    Panel(
        "Used part of the accounts", "At 1 no batch ends until there is room.",
        "percentunit", (
            ("{{account}} {{resource}} {{app}}", "ytstream_account_used_ratio{SELF}"),
        ), limit=1,
    ),
    Panel(
        "Used part of the type of a sum", "Of the largest total. At 1 a batch ends the job.",
        "percentunit", (("{{output}}.{{column}} {{app}}", "ytstream_total_used_ratio{SELF}"),),
        limit=TOTAL_SHARE,
    ),
)  # fmt: skip

MARKS: Sequence[tuple[str, str, str, str]] = (
    ("Restarts", "orange", "{{app}} started again", "changes(ytstream_epoch{SELF}[1m]) > 0"),
    (
        "Deploys", "blue", "{{app}} runs commit {{commit}}", f"{_JOB} unless {_JOB} offset 1m",
    ),
)  # fmt: skip
"""Marks on all charts: their name, colour, text and query."""


def queries() -> list[str]:
    """Return all queries, for a dashboard that shows every job."""
    return [_of(query) for panel in PANELS for _, query in panel.queries]


def text() -> str:
    """Return the JSON that Grafana imports."""
    source = {"type": "prometheus", "uid": "${source}"}
    return json.dumps(
        {
            "title": "ytstream jobs",
            "uid": "ytstream",
            "schemaVersion": _SCHEMA,
            "tags": ["ytstream"],
            "refresh": "1m",
            "time": {"from": "now-6h", "to": "now"},
            "links": [
                {"title": "Alerts", "type": "link", "url": "/alerting/list?search=ytstream"},
            ],
            "annotations": {"list": [_mark(source, *mark) for mark in MARKS]},
            "templating": {"list": [
                {"name": "source", "type": "datasource", "query": "prometheus"},
                {
                    "name": "app", "type": "query", "datasource": source, "multi": True,
                    "includeAll": True, "refresh": 2, "query": "label_values(ytstream_up, app)",
                },
            ]},
            "panels": [_panel(number, one, source) for number, one in enumerate(PANELS)],
        },
        indent=2,
    )  # fmt: skip


def _mark(source: dict[str, str], name: str, colour: str, said: str, query: str) -> dict[str, Any]:
    return {
        "name": name, "datasource": source, "enable": True, "iconColor": colour,
        "expr": _of(query), "titleFormat": name, "textFormat": said,
    }  # fmt: skip


def _panel(number: int, panel: Panel, source: dict[str, str]) -> dict[str, Any]:
    column, row = number % 3, number // 3
    made = {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": source,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": source, "expr": _of(query),
             "legendFormat": legend, **_ASKED.get(panel.kind, {})}
            for place, (legend, query) in enumerate(panel.queries)
        ],
    }  # fmt: skip
    return made | _SHOWN.get(panel.kind, {})


_ASKED: dict[str, dict[str, Any]] = {_TABLE: {"format": "table", "instant": True}}
"""A table asks for one moment, and gets a column for each label."""
_SHOWN: dict[str, dict[str, Any]] = {
    _WORDS: {"options": {"textMode": "name", "colorMode": "none"}},
    _TABLE: {
        "transformations": [
            {
                "id": "organize",
                "options": {
                    "excludeByName": dict.fromkeys(
                        ("Time", "Value", "__name__", "instance", "job"), True
                    )
                },
            }
        ]
    },
}
"""Names of the series in place of their figure, which is always 1; columns that say nothing."""


def _defaults(panel: Panel) -> dict[str, Any]:
    """Return unit, axis and limit of a panel; links of a table open what its cells name."""
    made: dict[str, Any] = (
        {"unit": panel.unit} if panel.is_signed else {"unit": panel.unit, "min": 0}
    )
    if panel.kind == _TABLE:
        labels = (("operation", "url"), ("runbook", "runbook"))
        made["links"] = [
            {"title": title, "url": f"${{__data.fields.{label}}}", "targetBlank": True}
            for title, label in labels
        ]
    if panel.limit is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.limit}]
        made["thresholds"] = {"mode": "absolute", "steps": steps}
        made["custom"] = {"thresholdsStyle": {"mode": "line"}}
    return made


def _of(query: str) -> str:
    return query.replace("SELF", _SELF)
