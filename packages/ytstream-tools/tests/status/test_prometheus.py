"""What `metrics` gives Prometheus: names, figures, and a server that outlives an outage; no JVM."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from prometheus_client.parser import text_string_to_metric_families

from minicluster import testing as minicluster
from tests.support.helpers import ContextOf, refusal
from tests.support.project import ROOT
from tests.support.promtool import promtool
from tests.support.status_steps import head_of_batch, invoke, send, write_batches, write_rows
from ytstream import newest
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import StoreFigures, Totals, head_row
from ytstream_tools.status import job_status, prometheus
from ytstream_tools.status.archive_status import ArchiveStatus
from ytstream_tools.status.sum_status import SumStatus

PAGE = (ROOT / "docs/status.md").read_text(encoding="utf-8")
TOTALS = Totals(1200, {"output": 1180, "rejected": 20}, {"too old": 20}, 0, 30.0)


def _figures(text: str) -> dict[tuple[str, ...], float]:
    """Return each sample by its name and its labels' values but `app`, in the labels' order."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = (sample.labels[name] for name in sorted(sample.labels) if name != "app")
            found[(sample.name, *labels)] = sample.value
    return found


@pytest.fixture
def running(provisioned_of: ContextOf) -> JobContext:
    """Connect a map that has done 12 batches and has 80 rows before it."""
    context = provisioned_of("transactional", rejects=True)
    send(context, 80)
    write_batches(context, range(1, 13), rejected={"too old": 2})
    write_rows(context, head_row(head_of_batch(context, 12, totals=TOTALS)))
    return context


def test_figures_are_those_of_ledger_and_queues(running: JobContext) -> None:
    found, queue = _figures(prometheus.once(running)), running.settings.queues[0]
    wanted: Mapping[tuple[str, ...], float] = {
        ("ytstream_up",): 1,
        ("ytstream_lag_rows", "3", queue): 20,
        ("ytstream_queue_rows_total", "3", queue): 20,
        ("ytstream_rows_read_total",): 1200,
        ("ytstream_rows_written_total", "output"): 1180,
        ("ytstream_rows_written_total", "rejected"): 20,
        ("ytstream_rows_rejected_total", "too old"): 20,
        ("ytstream_batches_total",): 12,
        ("ytstream_batch_seconds_total",): 30,
        ("ytstream_last_batch_seconds",): 2.5,
        ("ytstream_epoch",): 3,
        ("ytstream_process_state", "killed"): 1,
        ("ytstream_process_state", "running"): 0,
        ("ytstream_read_minus_written_rows",): 0,
    }
    assert {name: found[name] for name in wanted} == wanted
    for reason in running.job.reject:
        assert found["ytstream_rows_rejected_total", reason] == 0


def test_a_job_that_has_never_run_has_its_lag(provisioned_of: ContextOf) -> None:
    context = provisioned_of("transactional", "window", 2)
    found = _figures(prometheus.once(context))
    assert found["ytstream_process_state", "never started"] == 1
    assert ("ytstream_epoch",) not in found


_ARCHIVE = ArchiveStatus(
    output="output",
    open="2026-11-29T19:00:00Z",
    rows=3,
    bytes=300,
    pieces=2,
    tables=1,
    overdue_seconds=4.0,
    complete_until="2026-11-29T19:00:00Z",
    last="2026-11-29T18:00:00Z",
    last_rows=9,
    last_sealed=None,
)


def _of_everything(context: JobContext) -> dict[str, Any]:
    """Return the families of a job that has all that there is."""
    found = replace(
        job_status.read(context),
        state=job_status.StateSize(3, 10, 1_700_000_000_000, StoreFigures(7, 8, 9)),
        static=job_status.UnpublishedTables(1, []),
        archives=[_ARCHIVE],
        sums=[SumStatus("output", "total", "int64", 0, 2**62, 0.5)],
    )
    late: list[prometheus.Sample] = [
        ("ytstream_rows_warned_total", {"reason": "cheap"}, 1.0),
        ("ytstream_rows_late_total", {}, 1.0),
        ("ytstream_rows_without_event_time_total", {}, 1.0),
    ]
    job = replace(context.job, references={"auctions": []}, merge={"output": newest("date_time")})
    context = replace(context, job=job)
    made = prometheus.metrics_of("job", [*prometheus.samples(context, found), *late])
    return {family.name: family for family in made}


def test_each_metric_has_its_line_on_the_page(running: JobContext) -> None:
    named = dict(re.findall(r"^\| `(ytstream_\w+)` \| [^|]* \| ([^|]+) \|$", PAGE, re.MULTILINE))
    assert named == dict(prometheus.HELP)
    made = _of_everything(running).values()
    given = {f"{one.name}_total" if one.type == "counter" else one.name for one in made}
    assert given == set(prometheus.HELP)


def test_names_and_units_follow_the_conventions(running: JobContext) -> None:
    for name, family in _of_everything(running).items():
        assert re.fullmatch(r"ytstream_[a-z_]+", name)
        assert family.type in ("counter", "gauge")
        assert family.documentation.endswith(".")
        assert not re.search(r"_(ms|milliseconds|minutes|kb|mib|count)\b", name)


@pytest.mark.journey
def test_promtool_finds_nothing_to_say(running: JobContext) -> None:
    done = subprocess.run(
        [promtool(), "check", "metrics"], input=prometheus.once(running),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- the server


def test_the_server_answers_and_outlives_an_outage(
    running: JobContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    down = threading.Event()
    registry = prometheus_client.CollectorRegistry()

    def look() -> list[prometheus.Sample]:
        if down.is_set():
            raise OSError("down")
        return [*prometheus.samples(running, job_status.read(running))]

    registry.register(prometheus.Collector("bids", look))
    server, _ = prometheus_client.start_http_server(0, addr="127.0.0.1", registry=registry)

    def asked() -> dict[tuple[str, ...], float]:
        address = f"http://127.0.0.1:{server.server_port}/metrics"
        with urllib.request.urlopen(address, timeout=30) as answer:
            return _figures(answer.read().decode())

    try:
        assert asked()["ytstream_batches_total",] == 12
        down.set()
        assert asked() == {("ytstream_up",): 0.0}
        down.clear()
        assert asked()["ytstream_up",] == 1.0
    finally:
        server.shutdown()


def test_a_cluster_that_hangs_is_told_of_before_prometheus_gives_up(
    running: JobContext, cluster: minicluster.Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prometheus._REQUEST_SECONDS < 10  # its scrape_timeout
    monkeypatch.setattr(prometheus, "_REQUEST_SECONDS", 0.5)
    collector = prometheus.collector(running)
    assert len([*collector.collect()]) > 1
    cluster.client.faults.add(action="delay", seconds=20, times=None)
    began = time.monotonic()
    (family,) = collector.collect()
    assert time.monotonic() - began < 5
    assert (family.name, family.samples[0].value) == ("ytstream_up", 0)


def test_a_port_in_use_is_refused_in_one_line(running: JobContext) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = refusal(lambda: prometheus.serve(running, "127.0.0.1", port))
    assert said.startswith(f"cannot listen on 127.0.0.1:{port}: Address already in use")


def test_metrics_once_prints_and_ends(
    running: JobContext, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(running, tmp_path, "--once", command="metrics") == 0
    assert "# HELP ytstream_lag_rows Rows of the partition" in capsys.readouterr().out
