"""The page: its figures are those of the results, a missed case is no case, a line can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.faults.sweep import counts, results, stumbles, summary
from tests.faults.sweep.__main__ import exit_code, main, sample, seconds_of
from tests.faults.sweep.cases import (
    FAULTS,
    KILLS,
    Case,
    _first_alike,
    all_cases,
    cases_of,
    chosen,
    distinct,
    load_points,
    of_proof,
    sampled_stumbles,
)
from tests.faults.sweep.counts import GROUPS, Cell
from tests.faults.sweep.jobs import JOBS, LISTINGS, VARIANTS, variant_of
from tests.faults.sweep.page import PAGE, by_pair, page
from tests.faults.sweep.picture import kind_of, picture
from tests.faults.sweep.results import CONTROL, Line
from tests.support.project import ROOT
from tools import proof_digest
from ytstream.settings.job_settings import SPYT

NAME = "transactional-map-1:middle:ModifyRows.output"
COMMIT = "transactional-map-1:middle:CommitTransaction.ledger"
HELD = Line(f"{NAME}:refused", "held", 0, 0, 1.5, 31, "abc", recovered=1.0)
LINES = [
    HELD,
    replace(HELD, case=f"{NAME}:overtaken", recovered=3.0),
    replace(HELD, case=f"{COMMIT}:killed-after", verdict="failed", lost=2, said="output: lost []"),
    replace(HELD, case=f"{NAME}:dropped", verdict="missed"),
    replace(
        HELD, case=f"{COMMIT}:killed-after+restart-raise:CommitTransaction.ledger:killed-after"
    ),
    replace(HELD, case="at_least_once-map-1:middle:ModifyRows.output:refused", repeated=12),
]
PARTS = {"runtime": "abc", "harness": "def"}
ENDED = replace(HELD, verdict="ended", said="[state_damaged] the job cannot continue", waiting=40)


def _page(*lines: Line) -> str:
    return page(summary.summary(lines, PARTS, "", {}))


def test_the_figures_are_those_of_the_results() -> None:
    text = _page(*LINES)
    assert text.endswith("\n\ncases: 5\n")
    assert "| transactional-map-1 | 4 | 2 | 0 | 0 | 0 | 1 | 1 | 0 |" in text
    assert "| all | 5 | 2 | 12 | 0 | 0 | 1 | 1 | 0 |" in text
    assert "0 cases stalled, 0 ended and 1 had wrong rows" in text
    assert "1 more cases (16.67%) are not counted" in text
    assert f"- missed: `{NAME}:dropped`" in text
    assert "0 rows were duplicated in the exactly-once modes, and 12 under `at_least_once`" in text
    assert f"- failed: `{COMMIT}:killed-after`: `output: lost []`" in text
    count = len(of_proof())
    # The missed one has been played.
    assert f"**{count - 6} of {count} cases, including the control's, have no result yet.**" in text
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert [head.removeprefix("## ") for head in heads] == [
        "Limits of the claim", "Results", "Run it yourself", "Provenance", "How we measured",
        "Which job meets which fault, and where", "Results by variant",
        "Time to recover", "Control: SPYT's example", "Without each fix", "Real kills",
        "Defects found", "What is shown, and what is not",
    ]  # fmt: skip


def test_the_page_says_what_a_check_finds() -> None:
    text = _page(*LINES)
    assert "| cases | 1% false | 5% false | 10% false |" in text
    assert "| 20 | 18% | 64% | 88% |" in text
    assert "| 200 | 87% | > 99% | > 99% |" in text
    assert "15 of 20. They find 10% with a probability of 79%." in text


def test_all_missed_cases_are_named_where_their_counts_are() -> None:
    missed = [
        replace(HELD, case=case.name, verdict="missed", of=results.of(case.name))
        for case in (*chosen("listing-transactional-map-1", of_proof())[:25], *of_proof()[:25])
    ]
    jobs, control = _page(HELD, *missed).split("## Control: SPYT's example")
    assert jobs.count("- missed: `transactional-map-1:") == 25
    assert control.count("- missed: `listing-transactional-map-1:") == 25
    assert "25 more cases of the example (100.00%) are not counted" in control


def test_a_job_that_ended_is_counted_wherever_results_are() -> None:
    found = summary.summary([*LINES[1:], ENDED], PARTS, "", {})
    assert ["ended", ENDED.case, ENDED.said] in found.not_held
    (cell,) = (one for one in found.table["transactional-map-1"].values() if one.ended)
    assert (cell.cases, cell.ended, kind_of(cell)) == (1, 1, "failed")
    text = page(found)
    assert "2 rows were lost, 0 cases stalled, 1 ended and 1 had wrong rows" in text
    assert "| transactional-map-1 | 4 | 2 | 0 | 0 | 1 | 1 | 1 | 40 |" in text
    assert f"- ended: `{ENDED.case}`: `{ENDED.said}`" in text


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ({"held": 5, "missed": 1}, 0),
        ({"held": 5, "ended": 1}, 1),
        ({"held": 5, "stalled": 1}, 1),
        ({"held": 5, "failed": 1}, 1),
        ({"missed": 1}, 1),
        ({}, 0),
    ],
)
def test_the_exit_code_is_that_of_the_worst_case(verdicts: dict[str, int], code: int) -> None:
    assert exit_code(Counter(verdicts)) == code


def test_the_tally_has_each_fault_with_its_worst_time() -> None:
    lines = [
        replace(HELD, resumed=2.5, failures=1),
        replace(HELD, case=COMMIT + ":refused", resumed=7.5, failures=2),
        replace(ENDED, repeated=3),
        replace(HELD, case=f"{NAME}:dropped", verdict="missed"),
    ]
    tally = counts.tally(lines)
    found = {name: dict(zip(counts.TALLIED, row, strict=True)) for name, *row in tally}
    assert [*found] == ["refused", "dropped", "all"]
    refused, dropped = found["refused"], found["dropped"]
    assert (refused["cases"], refused["held"], refused["ended"]) == ("3", "2", "1")
    assert (refused["worst, s"], refused["failures"], refused["repeated"]) == ("7.5", "3", "3")
    assert (dropped["missed"], dropped["held"]) == ("1", "0")
    [[variant, *_], _] = counts.tally(lines, "variant")
    assert variant == HELD.variant
    assert counts.slowest(lines, 1) == [f"   7.5 s  {COMMIT}:refused"]


def test_results_of_former_rules_are_told() -> None:
    former = page(summary.summary(LINES, {}, "", {}))
    assert "of earlier rules" in former
    assert "earlier rules" not in _page(*LINES)
    assert " ended" not in former.partition("## Run it")[0].partition("In 5 cases")[2]


def test_a_result_counts_as_long_as_what_it_was_played_with_is_the_same() -> None:
    one = "transactional-window-1:middle:ModifyRows.output:refused"
    names = ["runtime", "template map", "template window"]
    parts = dict.fromkeys(names, "0")
    lines = [
        replace(HELD, case=case, digest=results.digest_of(case, parts)) for case in (HELD.case, one)
    ]
    assert results.of_parts(lines, parts) == lines
    assert results.of_parts(lines, {**parts, "runtime": "1"}) == []
    assert results.of_parts(lines, {**parts, "template window": "1"}) == lines[:1]
    assert results.of_parts(lines, {**parts, "template map": "1"}) == lines[1:]


def test_rows_in_a_queue_are_a_column_of_their_own() -> None:
    case = "listing-transactional-map-2:middle:ModifyRows.output:refused"
    line = replace(HELD, case=case, verdict="stalled", waiting=80, of=f"{CONTROL}x")
    assert "| transactional-map-2 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 80 |" in _page(HELD, line)


def test_the_summary_is_small_and_reads_back(tmp_path: Path) -> None:
    lines = [replace(HELD, case=f"{each.name}:middle:a.b:{fault}", repeated=1234, lost=1)
             for each in (*VARIANTS, *LISTINGS) for fault in FAULTS]  # fmt: skip
    found = summary.summary(LINES, PARTS, "b", {})
    summary.write(found, path := tmp_path / "summary.json")
    assert summary.read(path) == replace_lists(found)
    usual = [replace(line, repeated=0, lost=0) for line in lines]
    summary.write(summary.summary(usual, PARTS, "b", {}), path)
    assert path.stat().st_size < 7_000
    names = sum(len(name) + 3 for name in summary.read(summary.SUMMARY).missed)
    assert summary.SUMMARY.stat().st_size - names < 10_000


def replace_lists(found: summary.Summary) -> summary.Summary:
    """Return it as JSON gives it back."""
    known = {**vars(found), "recovery": {k: [*v] for k, v in found.recovery.items()}}
    known["table"] = {
        row: {group: cells.get(group, Cell()) for group in GROUPS}
        for row, cells in found.table.items()
    }
    return summary.Summary(**known)


def test_the_summary_is_of_the_results_where_they_are_at_hand() -> None:
    found = summary.read()
    if not (found.parts and results.RESULTS.exists()):
        pytest.skip("the results are an asset of the release")
    assert proof_digest.checksum(results.RESULTS) == found.sha256
    lines = results.of_parts(results.read(), found.parts)
    again = summary.summary(lines, found.parts, found.sha256, found.machine)
    assert summary.as_json(again) == summary.as_json(found)


def test_the_page_is_made_from_the_summary() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(summary.read(), stumbles.read())


def test_a_cluster_that_stumbles_has_a_section_of_its_own(tmp_path: Path) -> None:
    one, other, *_ = [case for case in sampled_stumbles() if case.fault == "refused"]
    lines = [
        replace(HELD, case=one.name, resumed=7.26, failures=1),
        replace(ENDED, case=other.name),
        replace(HELD, case=f"{one.name.rpartition(':')[0]}:dropped", verdict="missed"),
        replace(HELD, resumed=99.0),
    ]
    found = stumbles.of_lines(lines, "abc", {"versions": "pyspark 1"})
    stumbles.write(found, path := tmp_path / "stumbles.json")
    assert stumbles.read(path) == found
    text = page(summary.summary(LINES, PARTS, "", {}), found)
    assert f"| {one.variant.name} | 1: 7.3 s | " in text
    assert "Of 2 cases at 2 classes of request, 1 held" in text
    assert f"- ended: `{other.name}`: `{ENDED.said}`" in text
    assert "A cluster that stumbles" not in _page(*LINES).partition("## Time")[2]


def test_a_sample_is_of_few_variants_and_says_its_length() -> None:
    every = of_proof()
    found = sample(every, 100)
    assert (len(found), found) == (100, sample(every, 100))
    # Twenty of each, or all of a variant that has fewer.
    assert 5 <= len({case.variant for case in found}) < 10
    assert seconds_of(found, 2) < 900
    assert seconds_of(every, 2) > 10 * seconds_of(found, 2)
    assert any(case.variant.is_listing for case in sample(every, 200))
    assert sorted(case.name for case in sample(every[:3], 100)) == sorted(
        case.name for case in every[:3]
    )


def test_what_a_case_says_is_code_on_the_page() -> None:
    said = "output: lost ['a', None, ''] | `b`\nmore"
    text = _page(replace(HELD, verdict="failed", said=said))
    assert text.count("`output: lost ['a', None, ''] / 'b'`") == 1
    assert "more" not in text.splitlines()


def test_every_fault_is_in_one_column() -> None:
    faults = [fault for group in GROUPS.values() for fault in group]
    assert sorted(faults) == sorted(FAULTS)


def test_the_picture_is_a_document_with_a_cell_for_each_group() -> None:
    root = ElementTree.fromstring(picture(counts.table(LINES), {}))
    kinds = [node.get("class") for node in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds.count("failed") == 2  # one of them in the legend
    assert kinds.count("repeats") == 2
    assert "prefers-color-scheme: dark" in picture({}, {})


def test_the_picture_has_what_the_listing_makes_of_it_below() -> None:
    case = "listing-idempotent-map-1:middle:ModifyRows.output:refused"
    line = replace(HELD, case=case, of=f"{CONTROL}idempotent", verdict="failed", lost=3)
    drawn = picture(counts.table(LINES), by_pair(counts.control([*LINES, line])))
    assert "SPYT's example, idempotent map" in drawn
    assert drawn.count('class="failed"') == 3
    assert "<title>5 cases" in drawn


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        (Cell(), "none"),
        (Cell(3), "held"),
        (Cell(3, repeated=1), "repeats"),
        (Cell(3, lost=1), "failed"),
        (Cell(3, stalled=1), "failed"),
        (Cell(3, ended=1), "failed"),
        (Cell(3, repeated=1, failed=1), "failed"),
    ],
)
def test_a_cell_has_the_colour_of_its_worst_case(cell: Cell, kind: str) -> None:
    assert kind_of(cell) == kind


def test_a_later_line_replaces_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    for verdict in ("stalled", "held"):
        results.append(replace(HELD, verdict=verdict), path)
    assert [line.verdict for line in results.read(path)] == ["held"]
    results.append(replace(HELD, case="of the listing", of=f"{results.CONTROL}transactional"), path)
    results.append(replace(HELD, case="of a test", of="of an older version"), path)
    names = [HELD.case, "of the listing", "of a test"]
    assert [*results.pending(names, results.read(path))] == ["of a test"]


@pytest.mark.thorough
def test_every_case_has_a_name_of_its_own() -> None:
    cases = all_cases()
    assert len({case.name for case in cases}) == len(cases) >= 2_000
    assert sum(case.variant.is_listing for case in distinct(cases)) >= 800
    # Both connectors, but one alone with totals in a table and with merged rows.
    assert len(VARIANTS) == 2 * 24 + 4
    assert {case.kind for case in cases} == {*FAULTS}
    assert {case.variant for case in cases} == {*JOBS, *LISTINGS}
    one = "transactional-map-1:middle:ModifyRows.output:refused"
    assert [case.name for case in chosen(one, cases)] == [one]  # and not that of the listing
    assert [case.name for case in chosen("map-1:middle:ModifyRows.output:refused", cases)] == [
        f"{of}{guarantee}-map-1:middle:ModifyRows.output:refused"
        for of in ("", "listing-")
        for guarantee in ("transactional", "idempotent", "at_least_once")
    ]


@pytest.mark.parametrize("name", ["ModifyRows.output", "MoveNode.checkpoint/N/state/N/N/N.delta"])
def test_of_what_tasks_write_the_first_request_is_overtaken(name: str) -> None:
    method, _, about = name.partition(".")
    wanted = [f"middle:{name}", f"middle:{name}~last", f"last:{name}", "middle:ModifyRows.ledger"]
    points = [
        {"name": each, "place": each.partition(":")[0], "method": method,
         "object": "ledger" if each.endswith("ledger") else about,
         "is_write": True, "in_transaction": False, "after": ""}
        for each in wanted
    ]  # fmt: skip
    variant = variant_of("transactional-window-1")
    found = [case for case in cases_of(variant, points) if case.fault == "overtaken"]
    assert [case.point for case in found] == [f"middle:{name}"]


def test_a_kill_that_leaves_what_another_does_is_one_case() -> None:
    both = [
        {"name": f"middle:{name}", "place": "middle", "method": name, "object": "ledger",
         "is_write": True, "in_transaction": False, "after": after}
        for name, after in (("one", ""), ("two", "middle:one"))
    ]  # fmt: skip
    variant = next(each for each in VARIANTS if each.connector == SPYT)
    kills = [case for case in cases_of(variant, both) if case.fault in KILLS]
    assert len(kills) == 4
    assert [(case.point, case.fault) for case in distinct(kills, {variant.name: both})] == [
        ("middle:one", "killed-before"),
        ("middle:one", "killed-after"),
        ("middle:two", "killed-after"),
    ]


def test_for_each_kill_there_is_one_that_leaves_the_same() -> None:
    """Also where the point behind which it comes has no cases."""
    points = load_points()
    by_name = {
        name: {str(point["name"]): point for point in found} for name, found in points.items()
    }

    def left_by(found: Iterable[Case]) -> list[tuple[str, ...]]:
        single = (case for case in found if case.fault in KILLS and not case.second)
        return [
            (case.variant.name, *_first_alike(by_name[case.variant.name], case)) for case in single
        ]

    played = left_by(of_proof())
    assert len({*played}) == len(played)
    assert {*played} == {*left_by(all_cases())}


def test_a_case_that_did_not_hold_at_first_is_named() -> None:
    digest = results.digest_of(HELD.case, PARTS)
    red, foreign, green = (
        replace(HELD, verdict=told, digest=of)
        for told, of in (("failed", digest), ("held", "of another runtime"), ("held", digest))
    )
    assert results.replaced([red, foreign], PARTS) == []  # it is what the page shows
    assert results.replaced([red, foreign, green], PARTS) == [HELD.case]
    again = summary.summary([green], PARTS, "", {}, replaced=[HELD.case])
    assert f"run again. The results have both:\n\n- `{HELD.case}`" in page(again)


def test_a_kill_in_an_open_transaction_is_like_the_one_before() -> None:
    names = ("StartTransaction", "ModifyRows", "CommitTransaction")
    points = [
        {"name": f"middle:{name}", "place": "middle", "method": name, "object": "ledger",
         "is_write": True, "in_transaction": at > 0, "after": f"middle:{names[at - 1]}" * (at > 0)}
        for at, name in enumerate(names)
    ]  # fmt: skip
    variant = next(each for each in VARIANTS if each.connector == SPYT)
    kills = (case for case in cases_of(variant, points) if case.fault in KILLS)
    found = distinct(kills, {variant.name: points})
    assert [(case.point.partition(":")[2], case.fault) for case in found] == [
        ("StartTransaction", "killed-before"),
        ("StartTransaction", "killed-after"),
        ("CommitTransaction", "killed-after"),
    ]


def test_reads_are_not_killed_at() -> None:
    point: dict[str, Any] = {
        "name": "middle:get.queue-0/@id", "place": "middle", "method": "get",
        "object": "queue-0/@id", "is_write": False, "in_transaction": False, "after": "",
    }  # fmt: skip
    assert [*cases_of(VARIANTS[0], [point])] == [Case(VARIANTS[0], point["name"], "refused")]


def test_a_name_that_no_case_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--only", "exactly-twice"])
    assert caught.value.code == 2
    assert "no case has 'exactly-twice' in its name" in capsys.readouterr().err


def test_the_readme_has_the_figures_of_the_summary() -> None:
    found = summary.read()
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    total = counts.added(summary.totals(found.table).values())
    assert (total.lost, total.stalled, total.failed) == (0, 0, 0)
    assert f"We ran {total.cases:,} cases" in readme
    control = summary.totals(found.control)
    every = counts.added(control.values())
    exact = counts.added(
        cell for name, cell in control.items() if name.startswith("listing-transactional")
    )
    assert f"ran in {every.cases} cases, {exact.cases} of them in its transactional mode" in readme
    assert f"There it stalled in {exact.stalled}, " in readme
    assert (every.stalled, every.lost) == (exact.stalled, 0)
