"""Sums near the end of their 64 bits, as `status`, `metrics` and `alerts` tell of them; no JVM."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.examples import TOTALS
from tests.support.helpers import ContextOf
from tests.support.status_steps import head_of_batch, invoke, write_rows
from ytstream.ledger.ledger_rows import head_row
from ytstream.schema.sums import Bounds
from ytstream_tools.status import job_status, prometheus


def test_a_total_that_has_used_up_most_of_its_bits_is_told(
    provisioned_of: ContextOf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = provisioned_of("transactional", TOTALS)
    path = context.settings.output

    def told(bounds: Bounds) -> str:
        head = replace(head_of_batch(context, 1), sums={path: {"total": bounds}})
        write_rows(context, head_row(head))
        assert invoke(context, tmp_path) == 0
        return capsys.readouterr().out

    assert "has used up" not in told(Bounds(-(2**62), 2**62))
    for bounds in (Bounds(0, 2**63 - 1), Bounds(-(2**63), 7)):
        assert "output.total: a total has used up 100% of int64" in told(bounds)
    assert invoke(context, tmp_path, "--json") == 0
    shares = {one["column"]: one["share"] for one in json.loads(capsys.readouterr().out)["sums"]}
    assert shares == {"bids": 0.0, "total": 1.0}
    found = prometheus.samples(context, job_status.read(context))
    ratios = {
        labels["column"]: value for name, labels, value in found
        if name == "ytstream_total_used_ratio"
    }  # fmt: skip
    assert ratios == shares
