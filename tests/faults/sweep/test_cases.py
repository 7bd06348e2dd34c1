"""Which jobs meet which faults, and where: what the page says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.faults.sweep import cases, coverage
from tests.faults.sweep.cases import Case
from tests.faults.sweep.jobs import VARIANTS
from tests.faults.variants import Variant
from tests.support.examples import STATEFUL
from tests.support.server_errors import FULL


def test_jobs_with_state_are_killed_in_each_kind_of_batch() -> None:
    killed = {
        (case.variant.guarantee, case.variant.processing, case.place)
        for case in cases.of_proof()
        if case.fault in cases.KILLS and case.variant.is_stateful
    }
    assert {("transactional", each, "again") for each in STATEFUL} <= killed
    # A job that writes each total at once has no batch without rows.
    closing = [each for each in STATEFUL if each != "aggregate"]
    assert {("transactional", each, "rowless") for each in closing} <= killed
    assert {("at_least_once", "window", place) for place in ("again", "rowless")} <= killed


def test_jobs_with_state_meet_faults_that_are_no_kills_in_each_guarantee_and_with_two_queues() -> (
    None
):
    disturbed = {
        (case.variant.guarantee, case.variant.queues, case.place)
        for case in cases.of_proof()
        if case.fault == cases.DROPPED and case.variant.is_stateful and not case.variant.is_listing
    }
    for guarantee, queues in (("transactional", 1), ("transactional", 2), ("at_least_once", 1)):
        assert (guarantee, queues, "middle") in disturbed
    for guarantee in ("transactional", "at_least_once"):
        assert (guarantee, 1, "rowless") in disturbed


def test_the_table_says_which_jobs_meet_which_faults_and_where() -> None:
    found = [
        case
        for case in cases.of_proof()
        if case.variant.name in ("transactional-window-2", "transactional-deduplicate-1")
    ]
    kills, parallel, every = coverage.rows(found)
    assert kills[:2] == ("`transactional`: deduplicate (one queue)", "kill")
    places = dict(zip(coverage.PLACES, kills[2:], strict=True))
    assert {place for place, mark in places.items() if mark} == {"middle", "rowless", "again"}
    assert parallel[:2] == ("", "overtaken")
    assert every[0] == "`transactional`: window (two queues)"
    assert every[1].startswith("kill, overtaken, refused, ")
    # Stumbles take turns: they are in no cell.
    assert not any(cases.TOKEN in row[1] for row in coverage.rows(cases.of_proof()))


def test_the_names_of_jobs_are_told_in_few_words() -> None:
    jobs = [Variant("idempotent", "map", 1), Variant("idempotent", "map", 2)]
    listing = Variant("transactional", "map", is_listing=True)
    told = "`idempotent`: map (one queue or two); `transactional`, SPYT's example: map (one queue)"
    assert coverage.named([*jobs, listing]) == told


def test_an_account_is_full_only_where_a_request_needs_space() -> None:
    full = {case.point for case in cases.all_cases() if case.fault == cases.FULL_DISK}
    methods = {point.partition(":")[2].partition(".")[0] for point in full}
    assert methods
    assert methods <= {*FULL}


def test_a_kill_after_a_transaction_was_opened_leaves_what_was_there_before() -> None:
    points = {
        name: {"name": name, "is_write": True, "method": method, "in_transaction": False,
               "after": after}
        for name, method, after in (
            ("first", "set", ""), ("opened", "StartTransaction", "first"), ("last", "set", "opened")
        )
    }  # fmt: skip
    variant = VARIANTS[0]
    for point, kill in (("opened", cases.KILLED_AFTER), ("last", cases.KILLED_BEFORE)):
        alike = cases._first_alike(points, Case(variant, point, kill))
        assert alike == ("first", cases.KILLED_AFTER)


def test_jobs_take_turns_in_the_faults_of_a_batch() -> None:
    """Each kind of job meets each fault at each class of request once, and each job some of them.

    Jobs with state that stumble meet what a stumbling cluster does elsewhere, too.
    """

    def classes(found: Iterable[Case]) -> Counter[tuple[object, ...]]:
        return Counter(
            (case.variant.is_stateful, case.variant.queues, case.variant.connector,
             *case.class_, case.fault)
            for case in found
            if cases.is_in_turn(case) and case not in stumbles
        )  # fmt: skip

    stumbles = {*cases.sampled_stumbles()}
    played = classes(cases.of_proof())
    assert {*played.values()} == {1}
    of_others = (case for case in cases.all_cases() if case.fault not in cases.STUMBLES)
    assert {*played} >= {*classes(of_others)}
    met = {case.variant.name for case in cases.of_proof() if cases.is_in_turn(case)}
    assert met >= {variant.name for variant in VARIANTS} - cases.FULL
