"""The rules: who is started again, and who is not. The control gets no less than the job.

The job and the listing get the same patience and rows. Their faults differ by what is here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.faults.sweep import cases, injection, judging, play, playing
from tests.faults.sweep.cases import Case
from tests.faults.sweep.driver import PATIENCE, EndedError, StalledError
from tests.faults.sweep.jobs import LISTINGS, VARIANTS
from tests.faults.sweep.lab import PARTITIONS, made_of
from tests.faults.sweep.playing import Play
from tests.faults.sweep.points import Point
from tests.faults.variants import Variant
from tests.support.verdict import ENDED, FAILED, HELD, MISSED, NOT_HELD, STALLED, Verdict
from ytstream.errors import JobError, RestartableError, SupersededError
from ytstream.errors.error_codes import ErrorCode
from ytstream.ledger import positions

QUEUES = ("//q0", "//q1")
JOB = Variant("transactional", "map", 2)
LISTING = JOB._replace(is_listing=True)


SAMPLE = SimpleNamespace(
    newest=lambda job, sent: max(row["time"] for row in sent),
    make=lambda count, seed, start: [{"time": start + 1, "seed": seed}] * count,
)


@dataclass
class _Driver:
    """A driver that does nothing, or has ended with this error."""

    is_over: bool = False
    error: BaseException | None = None
    failures: int = 0

    def start(self) -> None:
        pass

    def ask_to_end(self) -> None:
        self.is_over = True

    def end(self, seconds: float = 0.0) -> None:
        self.is_over = True


@dataclass
class _Recording:
    """A recording without a cluster."""

    variant: Variant
    is_drained: Callable[[], bool]
    error: BaseException | None = None
    """What ends each driver at once."""
    put_into: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context = SimpleNamespace(settings=SimpleNamespace(queues=QUEUES), job=None)
        self.lab = SimpleNamespace(spark=None)
        self.sample = SAMPLE

    def driver(self, context: Any = None) -> _Driver:
        return _Driver(self.error is not None, self.error)

    def drained(self) -> Callable[[], bool]:
        return self.is_drained

    def put(self, queue: str, rows: Any, partitions: int = PARTITIONS) -> None:
        self.put_into.append(queue if partitions == PARTITIONS else f"{queue}/0")


def _play(recording: Any) -> Play:
    found = Play(recording, Case(recording.variant, "middle:ModifyRows.output", cases.REFUSED))
    found.sent = [{"time": 7}]
    found.start()
    return found


@dataclass
class _Clock:
    """A clock that goes on while somebody sleeps, and otherwise stands."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> _Clock:
    """Let the waits of a play take no time."""
    monkeypatch.setattr(playing, "end_queries", lambda spark: None)
    made = SimpleNamespace(job=None, sample=SAMPLE)
    monkeypatch.setattr(playing, "made_of", lambda variant: made)
    found = _Clock()
    monkeypatch.setattr(playing, "time", found)
    return found


both = pytest.mark.parametrize("variant", [JOB, LISTING], ids=["job", "listing"])


@both
def test_rows_arrive_while_a_driver_is_waited_for(
    variant: Variant, clock: _Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playing, "arrivals_of", lambda case: playing.EVERYWHERE)
    found = _play(recording := _Recording(variant, lambda: False))
    with pytest.raises(StalledError, match="rows stay in the queue"):
        found.drain()
    assert clock.now >= PATIENCE
    assert found.arrivals == PATIENCE * 2 / 3 / playing.ARRIVAL_SECONDS - 1
    assert recording.put_into == [*QUEUES] * found.arrivals
    # After half of the time an operator restarts the listing. Nobody restarts a job that hangs.
    assert len(found.drivers) == (2 if variant.is_listing else 1)
    # Each is newer than all before it, and no two have a seed in common.
    times = [row["time"] for row in found.sent]
    assert times == sorted(times)
    assert len({row["seed"] for row in found.sent[1:]}) == 2 * found.arrivals


@pytest.mark.parametrize(
    ("how", "queues", "rows"),
    [
        (playing.ONE_PLACE, ["//q0"] * 4, [6] * 4),
        (playing.BURSTS, ["//q0", "//q1"] * 2, [90] * 4),
        (playing.NOWHERE, [], []),
    ],
)
def test_rows_arrive_in_one_queue_in_bursts_or_nowhere(
    monkeypatch: pytest.MonkeyPatch, how: str, queues: list[str], rows: list[int]
) -> None:
    monkeypatch.setattr(playing, "arrivals_of", lambda case: how)
    found = _play(recording := _Recording(JOB, lambda: True))
    counts: list[int] = []
    monkeypatch.setattr(recording, "put", lambda queue, rows, partitions: counts.append(len(rows)))
    for _ in range(4):
        found.arrive()
    assert counts == rows
    found = _play(recording := _Recording(JOB, lambda: True))
    for _ in range(4):
        found.arrive()
    assert recording.put_into == queues


def test_rows_arrive_in_one_partition_of_the_only_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playing, "arrivals_of", lambda case: playing.ONE_PLACE)
    found = _play(recording := _Recording(JOB._replace(queues=1), lambda: True))
    found.arrive()
    assert recording.put_into == ["//q0/0"]
    assert found.arrived == 6


def test_cases_take_turns_in_how_rows_arrive() -> None:
    every = Counter(map(playing.arrivals_of, cases.of_proof()))
    assert {*every} == {*playing.ARRIVALS}
    assert min(every.values()) > len(cases.of_proof()) / 5


@both
@pytest.mark.parametrize("error", [RuntimeError("the query has ended"), RestartableError("away")])
def test_a_driver_that_production_starts_again_is_started_until_the_end(
    variant: Variant, error: BaseException
) -> None:
    found = _play(_Recording(variant, lambda: False, error=error))
    with pytest.raises(StalledError):
        found.drain()
    assert len(found.drivers) > 3


@pytest.mark.parametrize(
    "error", [JobError("the job cannot continue"), SupersededError("another one")]
)
def test_a_job_that_has_ended_for_good_is_not_started_again(error: BaseException) -> None:
    found = _play(_Recording(JOB, lambda: False, error=error))
    with pytest.raises(EndedError, match=str(error)):
        found.drain()
    assert len(found.drivers) == 1


def test_a_job_may_end_where_its_output_was_altered() -> None:
    ended = JobError("more columns", code=ErrorCode.NOT_PROVISIONED)
    found = _play(recording := _Recording(JOB, lambda: recording.error is None, error=ended))
    with pytest.raises(EndedError):
        found.drain()  # of another fault
    found.case = Case(JOB, "middle:CommitTransaction.ledger", cases.ALTERED)
    found.drivers[-1].error = JobError("another reason", code=ErrorCode.TOKEN)
    with pytest.raises(EndedError, match="another reason"):
        found.drain()
    found.drivers[-1].error = ended
    former = recording.driver

    def corrected(context: Any = None) -> _Driver:
        recording.error = None
        return former()

    recording.driver = corrected  # type: ignore[method-assign]
    found.drain()
    assert len(found.drivers) == 2


@dataclass
class _Played(_Recording):
    """A recording whose case can be played: its tables hold what they should."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.control = SimpleNamespace(faults=SimpleNamespace(clear=lambda: None), journal=list)

    def find(self, name: str) -> Point:
        return _point(2, "ModifyRows", "output")

    def life_of(self, point: object) -> Any:
        return SimpleNamespace(sent=[{"time": 7}], points=[])


@pytest.mark.parametrize("said", ["", "the fault hit another request"], ids=["hit", "missed"])
@pytest.mark.parametrize("is_drained", [False, True], ids=["before the rows", "after all rows"])
def test_a_case_in_which_the_job_ends_is_not_held(
    monkeypatch: pytest.MonkeyPatch, is_drained: bool, said: str
) -> None:
    """Not where the fault missed its point, either: a job has no reason to end then."""

    def held(found: Play) -> judging.Result:
        return judging.Result(HELD)

    def started(found: Play, point: object, life: object) -> None:
        found.before = 0
        found.start()
        if said:
            raise playing.MissedError(said)

    queue = SimpleNamespace(upper=(20,), consumed={0: 20 * is_drained})
    read = SimpleNamespace(queues=(queue,))
    monkeypatch.setattr(positions, "read", lambda client, settings: read)
    monkeypatch.setattr(judging, "judged", held)
    monkeypatch.setattr(play, "end_queries", lambda spark: None)
    monkeypatch.setattr(Play, "follow", lambda found: None)
    recording: Any = _Played(JOB, lambda: is_drained, error=JobError("the job cannot continue"))
    recording.context.client = None
    case = Case(JOB, "middle:ModifyRows.output", cases.REFUSED)
    monkeypatch.setattr(play, "cause_of", lambda fault: started)
    result = play.play(case, recording)
    assert (result.verdict, result.starts) == (ENDED, 1)
    assert result.verdict in NOT_HELD
    assert result.said == "the job cannot continue"
    recording.error = None
    result = play.play(case, recording)
    assert result.verdict == ((MISSED if said else HELD) if is_drained else STALLED)
    if said and is_drained:
        assert result.said == said


@pytest.mark.parametrize(
    ("fault", "drivers", "failures", "repeated", "cut", "said"),
    [
        (cases.REFUSED, 1, 0, 0, False, ""),
        (cases.REFUSED, 2, 0, 0, True, "2 drivers, not 1"),
        (cases.REFUSED, 1, 1, 0, True, "1 failures, not 0"),
        (cases.GONE, 1, 1, 0, True, ""),
        (cases.GONE, 1, 2, 0, True, "2 failures, not 1"),
        (cases.REFUSED, 1, 0, 80, True, ""),
        (cases.REFUSED, 1, 0, 81, True, "81 rows repeated, not 80"),
        (cases.REFUSED, 1, 0, 1, False, "1 rows repeated, not 0"),
        (cases.SLOW, 1, 0, 1, True, "1 rows repeated, not 0"),
    ],
)
@pytest.mark.parametrize("is_keyed", [False, True], ids=["in the table", "under a key"])
def test_a_case_with_more_than_its_fault_explains_is_not_held(
    monkeypatch: pytest.MonkeyPatch,
    fault: str,
    drivers: int,
    failures: int,
    repeated: int,
    cut: bool,
    said: str,
    is_keyed: bool,
) -> None:
    recording: Any = _Recording(JOB, lambda: True)
    found = _play(recording)
    found.case = Case(JOB, "middle:CommitTransaction.ledger", fault)
    found.may_cut_batch = cut
    started: list[Any] = [_Driver(failures=failures), *[_Driver()] * (drivers - 1)]
    found.drivers = started
    result = judging.Result(HELD, Verdict(repeated=repeated))
    if is_keyed:
        result = judging.Result(HELD, rewritten=repeated)
        said = said.replace("repeated", "written again")
    judged = judging.explained(result, found)
    assert (judged.verdict, judged.said) == (FAILED if said else HELD, said)


def test_a_driver_that_ends_at_the_very_end_counts_as_another_one() -> None:
    recording: Any = _Recording(JOB, lambda: True)
    found = _play(recording)
    found.drivers[-1].error = RuntimeError("the query has ended")
    judged = judging.explained(judging.Result(HELD), found)
    assert (judged.verdict, judged.said) == (FAILED, "2 drivers, not 1")


def _point(n: int, method: str, about: str, place: str = "middle") -> Point:
    return Point(place, method, about, "first", True, False, 3, 0, n=n)


BATCH = [
    _point(1, "MoveNode", "checkpoint/offsets/N"),
    _point(2, "ModifyRows", "output"),
    _point(3, "CommitTransaction", "output"),
    _point(4, "ModifyRows", "ledger"),
    _point(5, "CommitTransaction", "ledger"),
    _point(6, "MoveNode", "checkpoint/commits/N"),
]


@pytest.mark.parametrize(
    ("fault", "cut"),
    [
        (cases.KILLED_BEFORE, [4, 5]),
        (cases.KILLED_AFTER, [3, 4]),
        (cases.REFUSED, [1, 2, 3, 4, 5]),
        (cases.LOST_REPLY, [1, 2, 3, 4]),
    ],
)
def test_a_fault_may_cut_a_batch_off_until_the_ledger_has_it(fault: str, cut: list[int]) -> None:
    found = [
        point.n
        for point in BATCH
        if judging.may_cut_batch(Case(JOB, point.name, fault), point, BATCH)
    ]
    assert found == cut


def test_rows_arrive_while_a_fault_lasts_that_lets_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that is away would refuse them: they come once it is back."""
    happened: list[str] = []
    faults = SimpleNamespace(
        add=lambda **order: happened.append("lasting"), remove=lambda rule: happened.append("over")
    )
    for name in ("begin", "start", "arrive"):
        monkeypatch.setattr(Play, name, lambda found, *given, name=name: happened.append(name))
    monkeypatch.setattr(injection, "armed", lambda *given, **order: nullcontext(None))
    monkeypatch.setattr(injection, "_await", lambda *given: None)
    point = _point(2, "ModifyRows", "output")
    monkeypatch.setattr(injection, "hit_of", lambda *given: (point.method, point.object))
    recording: Any = _Recording(JOB, lambda: True)
    recording.control = SimpleNamespace(faults=faults)
    for fault in (cases.REFUSED, cases.AWAY):
        monkeypatch.setitem(
            injection._ACTIONS, fault, lambda *given: happened.append("what it does")
        )
        found = Play(recording, Case(JOB, point.name, fault))
        injection._living(found, point, cast("Any", SimpleNamespace(base="")))
    assert happened == [
        "begin", "start", "arrive", "what it does",
        "begin", "lasting", "start", "what it does", "over", "arrive",
    ]  # fmt: skip


def test_a_successor_finds_the_transactions_of_the_dead_driver_or_none() -> None:
    loaded: list[float] = []
    recording: Any = _Recording(JOB, lambda: True)
    recording.load_killed = lambda state, seconds: loaded.append(seconds)
    recording.control = SimpleNamespace(journal=SimpleNamespace(clear=lambda: None))
    recording.context.settings.output = "//o"
    recording.context.client = SimpleNamespace(get=lambda path: 0)
    for n in range(40):
        Play(recording, Case(JOB, f"middle:ModifyRows.{n}", cases.KILLED_AFTER)).begin(
            "", killed=True
        )
    assert {*loaded} == {31, 311}
    assert min(loaded.count(31), loaded.count(311)) > 10


@pytest.mark.parametrize(("times", "verdict"), [(2, HELD), (3, FAILED)])
def test_a_fault_explains_each_row_of_a_batch_once_more(times: int, verdict: str) -> None:
    variant = Variant("at_least_once", "window")  # its rows have no event
    found = _play(_Recording(variant._replace(processing="map"), lambda: True))
    found.may_cut_batch = True
    rows = {"output": Counter({"a": times, "b": 2})}
    must = {"output": Counter({"a": 1, "b": 2})}
    result = judging.Result(HELD, Verdict(repeated=times - 1), found=rows, must=must)
    assert judging.explained(result, found).verdict == verdict


def test_a_stall_of_the_control_has_rows_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    read = SimpleNamespace(queues=(SimpleNamespace(upper=(20,), consumed={0: 0}),))
    monkeypatch.setattr(positions, "read", lambda client, settings: read)
    for lost, verdict in ((0, HELD), (3, STALLED)):
        recording: Any = _Recording(LISTING, lambda: False)
        recording.context.client = None
        result = judging.Result(HELD, Verdict(lost=lost))
        assert judging.stopped(STALLED, result, _play(recording), "").verdict == verdict


def test_the_next_driver_of_an_altered_output_has_its_column() -> None:
    job = made_of(JOB).job
    altered = injection.with_column(job)
    assert [column.name for column in altered.output_columns["output"]] == [
        *(column.name for column in job.output_columns["output"]), "added_later",
    ]  # fmt: skip
    assert altered.outputs["rejected"] is job.outputs["rejected"]


def test_a_fault_in_a_start_cuts_no_batch_off() -> None:
    point = _point(2, "CommitTransaction", "ledger", "start-begin")
    assert not judging.may_cut_batch(Case(JOB, point.name, cases.DROPPED), point, [point])


@both
def test_a_case_that_takes_longer_has_not_stalled(variant: Variant, clock: _Clock) -> None:
    found = _play(_Recording(variant, lambda: clock.now > 0.7 * PATIENCE))
    found.drain()
    assert found.arrivals


def test_rows_in_the_queue_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = SimpleNamespace(upper=(20, 20), consumed={0: 20, 1: 5})
    monkeypatch.setattr(
        positions, "read", lambda client, settings: SimpleNamespace(queues=(queue,))
    )
    recording: Any = _Recording(LISTING, lambda: False)
    recording.context.client = None
    for missing, (lost, waiting) in {40: (25, 15), 15: (0, 15), 3: (0, 3)}.items():
        result = judging.Result("", Verdict(lost=missing))
        tables = judging.stopped(STALLED, result, _play(recording), "said").tables
        assert (tables.lost, tables.waiting) == (lost, waiting)
    stateful: Any = _Recording(LISTING._replace(processing="window"), lambda: False)
    stateful.context.client = None
    tables = judging.stopped(
        ENDED, judging.Result("", Verdict(lost=40)), _play(stateful), ""
    ).tables
    assert (tables.lost, tables.waiting) == (0, 40)  # they are of open windows


@pytest.mark.parametrize("variant", LISTINGS, ids=lambda variant: variant.name)
def test_the_listing_meets_the_jobs_faults(variant: Variant) -> None:
    """All but what needs an epoch, or two queries of one checkpoint in one JVM; or kills alone."""
    points = cases.load_points()
    of_listing = {case.kind for case in cases.cases_of(variant, points[variant.name])}
    job = next(each for each in VARIANTS if each.name in cases.FULL and not each.is_stateful)
    of_job = {case.kind for case in cases.cases_of(job, points[job.name])}
    if not cases.is_full(variant, "middle"):
        twice = set() if variant.is_stateful else {"second"}
        of_job &= {*cases.KILLS, cases.OVERTAKEN, *twice}
    assert of_listing == of_job - {*cases.LATE[1:4], cases.PAUSED}


def test_the_listing_gets_the_rows_of_the_job() -> None:
    """Where rows arrive decides what a case shows, so a case and its control have the same."""
    for listing in LISTINGS:
        job = listing._replace(is_listing=False)
        for fault in cases.FAULTS:
            pair = (Case(each, "middle:ModifyRows.output", fault) for each in (listing, job))
            assert len({playing.arrivals_of(case) for case in pair}) == 1


@pytest.mark.parametrize("is_drained", [False, True], ids=["rows wait", "all rows are read"])
@pytest.mark.parametrize("variant", [JOB, LISTING], ids=["job", "listing"])
def test_a_job_that_hangs_before_its_fault_stalls(
    monkeypatch: pytest.MonkeyPatch, is_drained: bool, variant: Variant
) -> None:
    """Without rows the request never comes, and nobody has chosen what the control hangs at."""

    def hangs(*_: object) -> None:
        raise StalledError("the fault")

    recording: Any = _Recording(variant, lambda: is_drained)
    recording.control = SimpleNamespace(faults=None)
    monkeypatch.setattr(injection, "until", hangs)
    found, rule = _play(recording), SimpleNamespace()
    is_missed = is_drained or variant.is_listing
    with pytest.raises(playing.MissedError if is_missed else StalledError):
        injection._await(found, cast("Any", rule), cast("Any", found.drivers[-1]))


def test_the_control_gets_new_rows_before_it_counts_as_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def follow(found: Play) -> None:
        followed.append(found.recording.variant.is_listing)

    followed: list[bool] = []
    monkeypatch.setattr(Play, "follow", follow)
    assert play._drain(_play(_Recording(LISTING, lambda: False))) == play.CONTINUED
    with pytest.raises(StalledError):
        play._drain(_play(_Recording(JOB, lambda: False)))
    assert followed == [True]


def test_the_control_has_one_queue_and_two_and_state() -> None:
    jobs = {(variant.guarantee, variant.processing, variant.queues) for variant in VARIANTS}
    listings = {(each.guarantee, each.processing, each.queues) for each in LISTINGS}
    assert listings <= jobs
    assert {queues for _, processing, queues in listings if processing == "map"} == {1, 2}
    assert {"window", "deduplicate"} <= {processing for _, processing, _ in listings}
