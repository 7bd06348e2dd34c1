"""The checker and the history: a lost row, a repeated one, a wrong one, and none of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.sweep import history, oracle, ranges
from tests.faults.sweep.jobs import VARIANTS
from tests.faults.variants import Variant
from tests.support.examples import example

VARIANT = Variant("transactional", "map")


def _sent() -> list[oracle.Row]:
    sample = example("transactional", "map", rejects=True).sample
    (rows,) = oracle.batches_of(VARIANT, sample.make, sample.start_us, 1, 1, 0, 200)
    return [*rows]


def test_equal_tables_hold() -> None:
    expected = history.expected_of(VARIANT, _sent())
    assert expected["output"].total() + expected["rejected"].total() == 200
    assert expected["rejected"].total() > 0
    verdict = oracle.compared(expected, expected)
    assert (verdict.lost, verdict.repeated, verdict.examples) == (0, 0, ())


def test_a_row_that_is_missing_and_one_that_is_there_twice() -> None:
    expected = history.expected_of(VARIANT, _sent())
    found = {name: counter.copy() for name, counter in expected.items()}
    first, second = [*found["output"]][:2]
    del found["output"][first]
    found["output"][second] += 1
    verdict = oracle.compared(expected, found)
    assert (verdict.lost, verdict.repeated, verdict.wrong) == (1, 1, 0)
    assert verdict.examples == (f"output: lost {first}", f"output: too many {second}")


def test_a_wrong_value_is_one_lost_and_one_too_many() -> None:
    expected = {"output": oracle.counted([{"a": 1}], ["a"])}
    verdict = oracle.compared(expected, {"output": oracle.counted([{"a": 2}], ["a"])})
    assert (verdict.lost, verdict.repeated, verdict.wrong) == (1, 1, 1)


def test_a_history_is_judged_from_its_file(tmp_path: Path) -> None:
    sent = _sent()
    found = history.expected_of(VARIANT, sent)
    lost = next(iter(found["output"]))
    del found["output"][lost]
    requests: list[dict[str, Any]] = [
        {"method": "ModifyRows", "fault": "hang_up"},
        {"method": "get", "fault": None},
    ]
    case = f"{VARIANT.name}:middle:ModifyRows.output:dropped"
    path = history.write(tmp_path, case, history.lines({"case": case}, sent, requests, found))
    judged = history.check(path)
    assert (judged.variant, judged.tables.lost, judged.tables.repeated) == (VARIANT, 1, 0)
    assert judged.tables.examples == (f"output: lost {lost}",)


@pytest.mark.parametrize(
    ("guarantee", "times", "code"), [("transactional", 2, 1), ("at_least_once", 2, 0)]
)
def test_a_history_that_breaks_its_promise_is_an_error(
    tmp_path: Path, guarantee: str, times: int, code: int
) -> None:
    sent, case = _sent(), f"{guarantee}-map-1:middle:ModifyRows.output:dropped"
    found = history.expected_of(Variant(guarantee, "map"), sent)
    assert history.main([str(_written(tmp_path, case, sent, found))]) == 0
    found["output"][next(iter(found["output"]))] = times
    assert history.main([str(_written(tmp_path, case, sent, found))]) == code
    found["output"]["[a row that nobody expects]"] = 1
    assert history.main([str(_written(tmp_path, case, sent, found))]) == 1


_HEAD = {"verdict": "held", "lost": 0, "repeated": 0, "starts": 1, "failures": 0, "said": ""}


@pytest.mark.parametrize(
    ("fault", "head", "broken"),
    [
        ("refused", {}, []),
        ("refused", {"verdict": "failed", "said": "row 3 twice"},
         ["the verdict is failed: row 3 twice"]),
        ("refused", {"verdict": "stalled"}, ["the verdict is stalled"]),
        ("refused", {"verdict": "ended"}, ["the verdict is ended"]),
        ("refused", {"lost": 1}, ["the first line has lost 1, and the tables 0"]),
        ("refused", {"repeated": 2}, ["the first line has repeated 2, and the tables 0"]),
        ("refused", {"starts": 2}, ["2 starts, not 1"]),
        ("refused", {"failures": 1}, ["1 failures, not 0"]),
        ("paused", {"starts": 2, "failures": 1}, []),
    ],
)  # fmt: skip
def test_the_first_line_of_a_history_is_judged_like_its_tables(
    tmp_path: Path, fault: str, head: dict[str, Any], broken: list[str]
) -> None:
    sent, case = _sent(), f"{VARIANT.name}:middle:ModifyRows.output:{fault}"
    lines = history.lines(
        {"case": case, **_HEAD, **head}, sent, [], history.expected_of(VARIANT, sent)
    )
    path = history.write(tmp_path, case, lines)
    assert history.check(path).broken == broken
    assert history.main([str(path)]) == int(bool(broken))


@pytest.mark.parametrize(("times", "broken"), [(1, 0), (2, 1), (0, 1)])
def test_a_history_has_the_batches_that_read_each_row_once(
    tmp_path: Path, times: int, broken: int
) -> None:
    sent, case = _sent(), f"{VARIANT.name}:middle:ModifyRows.output:refused"
    rows = {"path": "//q", "rows": {"0": [0, len(sent)]}}
    batches = [
        {"number": number, "queues": [rows], "rows_read": len(sent)} for number in range(times)
    ]
    ledger = ranges.Ledger(batches, {"//q": {0: len(sent)}})
    found = history.expected_of(VARIANT, sent)
    lines = history.lines({"case": case, **_HEAD}, sent, [], found, ledger)
    path = history.write(tmp_path, case, lines)
    assert history.main([str(path)]) == broken
    assert bool(history.check(path).broken) == bool(broken)


def test_a_case_that_missed_its_point_has_broken_no_promise(tmp_path: Path) -> None:
    case = f"{VARIANT.name}:middle:ModifyRows.output:refused"
    head = {"case": case, **_HEAD, "verdict": "missed"}
    path = history.write(tmp_path, case, history.lines(head, _sent(), [], {}))
    assert history.main([str(path)]) == 0


def test_a_file_that_is_no_history_is_not_one_that_holds(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for text in ("", '{"case": "a"}\n', "no JSON"):
        path.write_text(text)
        assert history.main([str(path)]) == 2
    assert history.main([str(tmp_path / "none")]) == 2


def _written(
    folder: Path, case: str, sent: list[oracle.Row], found: dict[str, Counter[str]]
) -> Path:
    return history.write(folder, case, history.lines({"case": case}, sent, [], found))


_SAME = '{"id":-5,"name":"\u0447","at":"2023-11-14T22:13:20.000001Z"}'


@pytest.mark.parametrize(
    ("text", "is_same"),
    [
        (_SAME, True),
        (_SAME.replace("22:13:20.000001Z", "23:13:20.000001+01:00"), True),
        (_SAME.replace("{", '{"$late":"of 10:00",'), True),
        (_SAME.replace("-5", "-6"), False),
        (_SAME.replace("-5", '"anything"'), False),
        (_SAME.replace("-5", '"-5"'), False),
        (_SAME.replace("-5", "-5.0"), False),
        (_SAME.replace(".000001", ""), False),
        (_SAME.replace("000001Z", "000001"), False),
        (_SAME.replace("2023-11-14T22:13:20.000001Z", "1970-01-01"), False),
        (_SAME.replace('"2023-11-14T22:13:20.000001Z"', "1700000000000001"), False),
        (_SAME.replace("\u0447", "?"), False),
        (_SAME.replace("}", ',"no":null}'), False),
        (_SAME.replace("}", ',"other":1}'), False),
        (_SAME.replace('"name":"\u0447",', ""), False),
        ("{}", False),
    ],
)
def test_a_rejected_row_has_the_values_of_its_queue(text: str, is_same: bool) -> None:
    at = 1_700_000_000_000_001
    queue = {"$tablet_index": 0, "$row_index": 7, "id": -5, "name": "\u0447", "at": at, "no": None}
    rejected = {"tablet_index": 0, "row_index": 7, "reason": "odd", "row": text}
    tables = {"//q/queue-0": [queue], "//q/rejected": [rejected]}
    client = SimpleNamespace(select_rows=lambda query: tables[query.split("[")[1][:-1]])
    found = oracle.read(client, "//q", {"rejected": ["id", "reason"]}, {"at"})
    expected = {"rejected": oracle.counted([{"id": -5, "reason": "odd"}], ["id", "reason"])}
    assert oracle.compared(expected, found).wrong == int(not is_same)


@pytest.mark.parametrize(("event", "wrong"), [("a", 0), ("b", 1)])
def test_a_row_of_an_idempotent_output_is_at_its_position(event: str, wrong: int) -> None:
    queue = [{"$tablet_index": 0, "$row_index": n, "event_id": name} for n, name in enumerate("ab")]
    tables = {
        "//q/queue-0": queue,
        "//q/output": [{"tablet_index": 0, "row_index": 0, "event_id": event}],
    }
    client = SimpleNamespace(select_rows=lambda query: tables[query.split("[")[1][:-1]])
    found = oracle.read(client, "//q", {"output": ["event_id"]}, set())
    expected = {"output": oracle.counted([{"event_id": event}], ["event_id"])}
    assert oracle.compared(expected, found).wrong == wrong


def test_the_journal_counts_what_a_key_hides() -> None:
    entries = [
        _entry("ModifyRows", "T", path="//out", rows=12),
        _entry("ModifyRows", "T", path="//out", rows=12, error={"code": 1}),
        _entry("ModifyRows", "T", path="//ledger", rows=2),
        _entry("ModifyRows", "aborted", path="//out", rows=5),
        _entry("CommitTransaction", "T"),
        _entry("CommitTransaction", "aborted", error={"code": 1}),
        _entry("ModifyRows", "T", fault="hang_up", path="//out", rows=7),
        _entry("ModifyRows", "T", fault="lose_reply", path="//out", rows=3),
        _entry("ModifyRows", "cut off", path="//out", rows=5),
        _entry("CommitTransaction", "cut off", fault="proxy_down"),
    ]
    assert oracle.written_rows(entries, "//out") == 12 + 3


def _entry(
    method: str, transaction: str, error: Any = None, fault: str = "", **args: Any
) -> SimpleNamespace:
    given = {"transaction": transaction, **args}
    return SimpleNamespace(method=method, args=given, error=error, fault=fault or None)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_rows_of_a_seed_are_equal_and_go_forward(variant: Variant) -> None:
    sample = example(variant.guarantee, variant.processing, variant.queues, rejects=True).sample
    first, again = (
        oracle.batches_of(variant, sample.make, sample.start_us, 31, 3, 0, 40) for _ in range(2)
    )
    assert first == again
    events = [[row["event_id"] for row in rows] for rows in first]
    known = 6 if variant.processing == "deduplicate" else 0
    assert len({*events[0]} & {*events[1]}) == known
    assert not {*events[0]} & {*events[2]}
    expected = history.expected_of(variant, [row for rows in first for row in rows])
    assert expected["output"].total() > 0
