"""YTsaurus' strings are bytes: one value of each, compared and shown. Without Spark."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import yt.type_info as ti
from rich.console import Console
from yt import yson

from tests.support.examples import example
from ytstream import Column
from ytstream.cluster.client import Client
from ytstream.schema.columns import resolved
from ytstream.schema.string_values import as_bytes, canonical, shown
from ytstream_tools.demo import demo_tables, sample_types
from ytstream_tools.demo.demo_text import differences
from ytstream_tools.demo.event_times import microseconds
from ytstream_tools.demo.job_sample import counted
from ytstream_tools.replay.differences import OutputRows, difference, lines

GZIP = b"\x00\xff\x1f\x8b"


def _read(value: bytes) -> Any:
    """Return the value as ytsaurus-client gives it."""
    return yson.loads(yson.dumps(value))


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("", ""),
        (b"", ""),
        ("ы", "ы"),
        ("ы".encode(), "ы"),
        (_read("ы".encode()), "ы"),
        (GZIP, GZIP),
        (bytearray(GZIP), GZIP),
        (_read(GZIP), GZIP),
        (b"\xed\xa0\x80", b"\xed\xa0\x80"),
    ],
    ids=repr,
)
def test_a_string_has_one_value(value: Any, wanted: str | bytes) -> None:
    assert canonical(value) == wanted
    assert type(canonical(value)) is type(wanted)
    assert canonical(as_bytes(value)) == wanted


def test_a_screen_shows_the_first_bytes_and_the_length() -> None:
    assert shown("ы\n") == "'ы\\n'"
    assert shown(GZIP) == "b'\\x00\\xff\\x1f\\x8b' (4 bytes)"
    assert shown(b"\xff" * 1_000) == repr(b"\xff" * 16) + "... (1000 bytes)"
    assert shown(((GZIP,), ("", GZIP))) == f"(({shown(GZIP)},), ('', {shown(GZIP)}))"
    assert shown((1, [_read(GZIP)], {"a": None})) == f"(1, [{shown(GZIP)}], {{'a': None}})"


COLUMNS = resolved(
    "",
    [
        Column("payload", "string"),
        Column("parts", ti.List[ti.Optional[ti.String]]),
        Column("named", ti.Dict[ti.String, ti.String]),
        Column("any", "any"),
    ],
)


def _rows(make: Any) -> list[dict[str, Any]]:
    values = [make(value) for value in (GZIP, b"", "ы".encode(), b"\xff" * 100)]
    return [{"payload": v, "parts": [v, None], "named": [[v, v]], "any": {"a": v}} for v in values]


def test_what_the_client_reads_equals_what_the_sample_has() -> None:
    given, found = counted(_rows(bytes), COLUMNS), counted(_rows(_read), COLUMNS)
    outcome = demo_tables.compare(given, found)
    assert (outcome.rows_out, outcome.lost, outcome.duplicated) == (4, 0, 0)


def test_rows_keep_their_bytes_on_the_cluster(client: Client, root: str) -> None:
    schema = [
        {"name": "payload", "type": "string", "sort_order": "ascending"},
        {"name": "value", "type": "any"},
    ]
    client.create("table", root, recursive=True, attributes={"dynamic": True, "schema": schema})
    client.mount_table(root, sync=True)
    sent = [{"payload": row["payload"], "value": row["any"]} for row in _rows(bytes)]
    client.insert_rows(root, sent)
    columns = resolved("", [Column("payload", "string", key=True), Column("value", "any")])
    assert demo_tables.read(client, root, columns) == counted(sent, columns)
    client.insert_rows(root, list(client.select_rows(f"payload, value from [{root}]")))
    assert demo_tables.read(client, root, columns) == counted(sent, columns)


def test_a_text_column_takes_no_bytes() -> None:
    sample_types.verify("", COLUMNS, _rows(bytes))
    with pytest.raises(Exception, match=r"x = b'ab' \(2 bytes\), tables.py says utf8"):
        sample_types.verify("", resolved("", [Column("x", "utf8")]), [{"x": b"ab"}])


def test_a_time_may_be_written_in_bytes() -> None:
    assert microseconds(b"1970-01-01T00:00:01", "string") == 1_000_000
    assert microseconds(GZIP, "string") is None


def test_bytes_that_differ_are_shown() -> None:
    """By the demo and the tests, and by `rehearse`."""
    job = example("transactional", "map").job
    row: list[Any] = ["e", 1, 2, 3, None, None, 4, GZIP]
    outcome = demo_tables.compare(Counter([(*row,)]), Counter([(*row[:-1], b"\xff" * 1_000)]))
    console = Console(width=200, record=True)
    console.print(differences(job, outcome))
    text = console.export_text()
    assert shown(GZIP) in text
    assert shown(b"\xff" * 1_000) in text

    before, after = ([{"id": _read(GZIP), "n": n}] for n in (1, 2))
    found = difference(OutputRows(before, ["id"]), OutputRows(after, ["id"]))
    assert len(found.changed) == 1
    assert f"  id={shown(GZIP)}" in lines("output", found, ["id"])
    same = difference(OutputRows(before, ["id"]), OutputRows([{"id": GZIP, "n": 1}], ["id"]))
    assert same.is_equal


def test_bytes_in_a_list_are_shown_with_their_length() -> None:
    long = b"\xff" * 1_000
    before, after = ([{"id": 1, "list": [first, long, long]}] for first in (long, GZIP))
    text = "\n".join(
        lines("output", difference(OutputRows(before, ["id"]), OutputRows(after, ["id"])), ["id"])
    )
    assert f"({shown(long)}, ...)" in text
    assert f"({shown(GZIP)}, {shown(long)}, ...)" in text
