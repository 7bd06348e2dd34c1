"""`tables` shows all that `provision` creates; no cluster."""

from __future__ import annotations

from dataclasses import replace

from tests.support.examples import MERGE, TOTALS, example, settings_of
from ytstream import newest
from ytstream_tools.status import description


def test_the_functions_of_totals_are_shown() -> None:
    job = example("transactional", TOTALS).job
    shown = description.tables(job, settings_of(job, "//home/job"))
    (line,) = (line.split() for line in shown.splitlines() if line.startswith("total"))
    assert line[-1] == "sum"
    assert shown.count("aggregate") == 1  # other tables have no such column


def test_the_table_of_deletes_is_shown() -> None:
    job = example("transactional", MERGE).job
    job = replace(job, merge={"output": newest("date_time", apply_as_deletes="is_closed")})
    shown = description.tables(job, settings_of(job, "//home/job"))
    table = shown.partition("output_deleted //home/job/output_deleted: sorted dynamic table")[2]
    assert [line.split()[0] for line in table.splitlines()[3:5]] == ["auction", "date_time"]
