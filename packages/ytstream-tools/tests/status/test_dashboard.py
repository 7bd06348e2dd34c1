"""The Grafana dashboard: each query names a metric that exists, and Prometheus can read it."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.promtool import promtool
from ytstream_tools import __main__ as light
from ytstream_tools.status import alert_limits, dashboard, prometheus


def test_each_query_names_a_metric_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert light.main(["dashboard"]) == 0
    made = json.loads(capsys.readouterr().out)
    asked = [target["expr"] for panel in made["panels"] for target in panel["targets"]]
    assert asked == dashboard.queries()
    for query in asked:
        names = re.findall(r"\bytstream_\w+", query)
        assert names
        assert {*names} <= {*prometheus.HELP}, query


def test_every_metric_is_on_it() -> None:
    shown = {name for query in dashboard.queries() for name in re.findall(r"ytstream_\w+", query)}
    # Whether there is an answer at all, and what few jobs have.
    assert {*prometheus.HELP} - shown == {"ytstream_up", "ytstream_static_tables_waiting"}


def test_each_panel_says_what_to_read_from_it() -> None:
    panels = json.loads(dashboard.text())["panels"]
    assert all(panel["description"] for panel in panels)
    limited = {
        panel["title"]: panel["fieldConfig"]["defaults"]["thresholds"]["steps"][-1]["value"]
        for panel in panels
        if "thresholds" in panel["fieldConfig"]["defaults"]
    }
    assert limited["How long the first row has waited"] == alert_limits.LATE_SECONDS
    assert limited["Seconds since the last batch"] == alert_limits.STALLED_SECONDS


def test_restarts_and_deploys_are_marked_on_each_chart() -> None:
    marks = json.loads(dashboard.text())["annotations"]["list"]
    assert [mark["name"] for mark in marks] == ["Restarts", "Deploys"]
    for mark in marks:
        assert {*re.findall(r"ytstream_\w+", mark["expr"])} <= {*prometheus.HELP}


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in json.loads(dashboard.text())["panels"]]
    assert len({(place["x"], place["y"]) for place in places}) == len(places)


def test_rows_that_a_map_has_written_too_often_are_seen() -> None:
    """They are a negative figure."""
    panels = json.loads(dashboard.text())["panels"]
    signed = [
        panel["targets"][0]["expr"]
        for panel in panels
        if "min" not in panel["fieldConfig"]["defaults"]
    ]
    assert [name.partition("{")[0] for name in signed] == ["ytstream_read_minus_written_rows"]


@pytest.mark.journey
def test_prometheus_can_read_each_query(tmp_path: Path) -> None:
    rules = [
        {"record": f"a:{number}", "expr": query} for number, query in enumerate(dashboard.queries())
    ]
    groups = {"groups": [{"name": "dashboard", "rules": rules}]}
    (tmp_path / "rules.yml").write_text(json.dumps(groups))
    line = [promtool(), "check", "rules", "rules.yml"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
