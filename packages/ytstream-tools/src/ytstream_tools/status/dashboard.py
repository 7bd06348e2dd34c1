"""A Grafana dashboard for what `metrics` serves: one row of panels for each question."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Of the dashboard's JSON (Grafana, "Dashboard JSON model"): the version of its schema.
_SCHEMA = 39
_SELF = 'app=~"$app"'
_WIDTH, _HEIGHT = 8, 8


@dataclass(frozen=True)
class Panel:
    """One panel: its queries by the name of their line."""

    title: str
    #: Grafana's name of the unit.
    unit: str
    queries: Sequence[tuple[str, str]]
    #: Whether a figure may be below 0: the axis of the others begins there.
    is_signed: bool = False


PANELS: Sequence[Panel] = (
    Panel("Rows that wait", "short", (
        ("{{app}}", "sum by (app) (ytstream_lag_rows{SELF})"),
    )),
    Panel("How long the first row has waited", "s", (
        ("{{app}}", "max by (app) (ytstream_lag_seconds{SELF})"),
    )),
    Panel("Process", "short", (
        ("{{app}} {{state}}", "ytstream_process_state{SELF} == 1"),
    )),
    Panel("Rows per second: in, read, written", "rowsps", (
        ("in {{app}}", "sum by (app) (rate(ytstream_queue_rows_total{SELF}[5m]))"),
        ("read {{app}}", "rate(ytstream_rows_read_total{SELF}[5m])"),
        ("{{output}} {{app}}", "rate(ytstream_rows_written_total{SELF}[5m])"),
    )),
    Panel("Seconds per batch", "s", (
        ("mean {{app}}", "rate(ytstream_batch_seconds_total{SELF}[15m])"
                         " / rate(ytstream_batches_total{SELF}[15m])"),
        ("last {{app}}", "ytstream_last_batch_seconds{SELF}"),
    )),
    Panel("Seconds since the last batch", "s", (
        ("{{app}}", "ytstream_head_age_seconds{SELF}"),
    )),
    Panel("Rejected rows by reason, and late rows", "rowsps", (
        ("{{reason}} {{app}}", "rate(ytstream_rows_rejected_total{SELF}[15m])"),
        ("late {{app}}", "rate(ytstream_rows_late_total{SELF}[15m])"),
    )),
    Panel("Used of the accounts' quota", "percentunit", (
        ("{{account}} {{resource}}", "max by (account, resource) "
                                     "(ytstream_account_used_ratio{SELF})"),
    )),
    Panel("Starts in an hour", "short", (
        ("{{app}}", "delta(ytstream_epoch{SELF}[1h])"),
    )),
    Panel("Rows read, less those written by a map", "short", (
        ("{{app}}", "ytstream_read_minus_written_rows{SELF}"),
    ), is_signed=True),
    Panel("Rows of the state", "short", (
        ("{{app}}", "ytstream_state_rows{SELF}"),
    )),
    Panel("What the state store takes", "bytes", (
        ("memory {{app}}", "ytstream_state_memory_bytes{SELF}"),
        ("files {{app}}", "ytstream_state_file_bytes{SELF}"),
    )),
    Panel("Seconds of the last batch's tasks in the state store", "s", (
        ("{{app}}", "ytstream_state_store_seconds{SELF}"),
    )),
    Panel("Size of the checkpoint", "bytes", (
        ("{{app}}", "ytstream_state_checkpoint_bytes{SELF}"),
    )),
    Panel("How far the watermark is behind", "s", (
        ("{{app}}", "time() - ytstream_watermark_timestamp_seconds{SELF}"),
    )),
)  # fmt: skip


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


def _panel(number: int, panel: Panel, source: dict[str, str]) -> dict[str, Any]:
    column, row = number % 3, number // 3
    axis = {"unit": panel.unit} if panel.is_signed else {"unit": panel.unit, "min": 0}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": axis, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + place), "datasource": source, "expr": _of(query),
             "legendFormat": legend}
            for place, (legend, query) in enumerate(panel.queries)
        ],
    }  # fmt: skip


def _of(query: str) -> str:
    return query.replace("SELF", _SELF)
