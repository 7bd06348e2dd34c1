"""Twelve loads of a real job: what `why` says, whether its figures are there, what its advice does.

The job is a process with the real SPYT. A load that is made of time waits and does not work: a
Python function that sleeps, a cluster that answers late. Nothing asserts how fast this machine is.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from tests.journeys.loads.stage import Stage, stage
from tests.journeys.loads.table import FULL, PACED, TOO_MANY, Load
from tests.support.jvm import submit_args
from tests.support.under_load.code import CORRECTED, FAILS, POISON, SLEEPS, WRONG
from tests.support.under_load.minute import Minute, differing
from tests.support.under_load.producer import ALL
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.journey]

Note = Callable[[str, object], None]
MINUTE = 60.0
BEHIND_A_PROXY = 0.3
"""Seconds that a slow proxy keeps each request."""
HEALTHY = ("idle", "works")
_FULL_BATCHES = 10
"""As many as the figures are of."""


@pytest.fixture(scope="module", params=["map", "window"])
def here(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """A job of each kind; a test leaves it with every row read, and the next one goes on."""
    with pytest.MonkeyPatch.context() as patched:
        # A task that sleeps needs no processor: each tablet has a task.
        patched.setenv("YTSTREAM_SUBMIT_ARGS", submit_args("local[4]"))
        with stage(tmp_path_factory.mktemp(request.param), request.param) as made:
            yield made


# -- what is said


def _first(said: str) -> tuple[str, str]:
    """Return the cause that the command names, and what it says of it."""
    lines = [line for line in said.splitlines() if not line.startswith("cluster: ")]
    name, _, text = lines[0].partition(": ") if lines else ("", "", "")
    return name, text


def _named(here: Stage, *causes: str, also: str = "") -> tuple[str, Minute]:
    """Wait for the cause; return what the command says, and the tables of the same moment.

    Its figures are those of the tables.
    """
    for _ in range(5):
        here.wait_named(*causes, also=also)
        said, minute, passed = here.asked()
        name, text = _first(said)
        if name in causes:
            moments = (passed * step / 10 for step in range(11))
            wrong = [differing(text, _known(here, minute, ago)) for ago in moments]
            assert [] in wrong, (said, wrong)
            return said, minute
    raise AssertionError(said)


def _known(here: Stage, minute: Minute, ago: float) -> dict[str, float]:
    """Return the figures of the tables so many seconds ago, and those of the configuration."""
    found, settings = minute.figures(ago), here.job.context.settings
    period = 3 * settings.trigger_seconds
    if minute.batches:
        since = minute.time - ago - float(minute.batches[0]["started"]) / 1e6
        period = min(period, since)
    return found | {
        "tablet": float(max(minute.waiting, key=lambda one: minute.waiting[one])),
        "trigger": settings.trigger_seconds,
        "period": period,
        "worked": minute.worked(period),
        "epoch": float(minute.epoch),
        "batch": float(minute.batches[-1]["batch"] + 1 if minute.batches else _next(here)),
        "line": float(here.line_of("raise ValueError")),
    }


def _next(here: Stage) -> int:
    """Return the number of a new process' first batch: a state goes on counting."""
    path = here.job.context.settings.ledger
    if not here.job.context.job.kind.is_stateful:
        return 0
    row = next(here.client.select_rows(f'batch from [{path}] where kind = "head"'))
    return int(row["batch"]) + 1


def _told(
    note: Note, here: Stage, name: str, said: str, figure: str, before: float, after: float
) -> None:
    kind = here.job.context.job.processing
    cause, text = _first(said)
    line = f"| {name} | {kind} | {cause}: {text} | {figure} | {before:.4g} | {after:.4g} |"
    note("load", line)
    print(line)


def _is_better(load: Load, before: float, after: float) -> bool:
    return after >= load.better * before if load.better > 1 else after <= load.better * before


# -- loads of a job whose configuration is good


def test_a_full_account_is_named_and_the_job_goes_on_when_it_has_space(
    here: Stage, record_property: Note
) -> None:
    _rest(here)
    here.producer.tablets = ALL
    here.run({})
    here.producer.send(100)
    here.job.wait_for_batches(2)
    account = here.client.get(f"{here.job.context.settings.ledger}/@account")
    path = f"//sys/accounts/{account}/@resource_limits"
    limits = here.client.get(path)
    here.client.set(path, {**limits, "node_count": 1})
    here.slow_down(*FULL)
    here.wait_named("quota")
    eventually(lambda: here.read().figures()["waiting"] > 500, 120, pause=1.0)
    said, minute, _ = here.asked()
    used = here.client.get(f"//sys/accounts/{account}/@resource_usage/node_count")
    assert _first(said)[0] == "quota"
    assert differing(_first(said)[1], {"used": float(used), "limit": 1.0}) == []
    assert "the job then goes on" in said
    before = minute.figures()["waiting"]
    here.client.set(path, limits)
    here.restore()
    here.drain()
    after = here.read().figures()["waiting"]
    _told(record_property, here, "a full account", said, "waiting", before, after)
    assert not here.has_ended()
    assert after == 0
    _end(here)


def test_a_hot_tablet_hides_a_slow_proxy(here: Stage, record_property: Note) -> None:
    load = replace(PACED["one hot tablet"], chosen={}, code="", rows=600, is_slow_proxy=True)
    _begin(here, load)
    said, minute = _named(here, "tablet", also="requests")
    assert "\n  requests: " in said
    before = minute.figures()["share"]
    here.restore()  # what waits in the one tablet would take minutes
    here.drain()
    _slow_proxy(here)
    here.producer.tablets = ALL
    here.producer.send(700)
    then, minute = _named(here, "requests")
    between = minute.figures()
    name = "a hot tablet and a slow proxy"
    _told(record_property, here, name, said, "share", before, between["share"])
    here.restore()
    after = here.after().figures()["verify"]
    _told(record_property, here, "... then", then, "verify", between["verify"], after)
    assert between["share"] < before / 2
    assert after < between["verify"] / 2
    _end(here)


# -- loads under which batches end


@pytest.mark.parametrize("name", PACED)
def test_a_load_is_named_and_the_advice_helps(
    here: Stage, name: str, record_property: Note
) -> None:
    load = PACED[name]
    _begin(here, load)
    said, minute = _named(here, load.cause)
    before = minute.figures()
    assert before["oldest"] < MINUTE
    assert re.search(load.says, said), said
    assert "submit" not in said
    if name == TOO_MANY:
        before = _of_full_batches(here, load)
    _follow(here, load, said)
    after = _after(here, load)
    here.producer.send(0)
    _told(record_property, here, name, said, load.figure, before[load.figure], after)
    if name == TOO_MANY:
        assert not _is_better(load, before[load.figure], after)
        _without_the_function(here, record_property)
    else:
        assert _is_better(load, before[load.figure], after)
    _end(here)


def _of_full_batches(here: Stage, load: Load) -> dict[str, float]:
    """Return the figures once the last batches have all rows that they may read.

    The first ones have fewer, and so fewer in a second.
    """
    most = int(str(load.chosen["max_rows_per_partition"])) * len(ALL)

    def full() -> dict[str, float] | None:
        found = here.read()
        last = [int(row["rows_read"]) for row in found.batches[-_FULL_BATCHES:]]
        return found.figures() if len(last) == _FULL_BATCHES and min(last) >= most else None

    found: dict[str, float] = eventually(full, 2 * MINUTE, what="full batches", pause=1.0)
    return found


def _without_the_function(here: Stage, note: Note) -> None:
    """The same rows are too many because of a slow function: without it they are not."""
    said, minute = _named(here, "transform")
    assert "make preview" in said
    before = minute.figures()["transform"]
    here.run({})
    after = here.after().figures()["transform"]
    _told(note, here, "a slow UDF", said, "transform", before, after)
    assert after < before / 2


def _begin(here: Stage, load: Load) -> None:
    """Let some rows come and then too many, as on a day that begins well."""
    _rest(here)
    here.producer.tablets, here.producer.step_us = ALL, load.step_us
    here.run(load.chosen, load.code)
    here.producer.send(load.before)
    here.job.wait_for_batches(load.batches)
    here.slow_down(*load.slow)
    if load.is_slow_proxy:
        _slow_proxy(here)
    here.producer.tablets = load.tablets
    here.producer.send(load.rows)


def _slow_proxy(here: Stage) -> None:
    (address,) = here.job.cluster.rpc
    here.slow_down({"action": "delay", "seconds": BEHIND_A_PROXY, "proxy": address})


def _rest(here: Stage) -> None:
    """Let the job be well again, whatever a test has left."""
    here.restore()
    here.producer.send(0)
    if here.read().figures()["waiting"]:
        here.run({})
        here.drain()


def _follow(here: Stage, load: Load, said: str) -> None:
    """Do what the advice says, in the way in which the job was started."""
    if load.follow == "spread":
        here.producer.tablets = ALL
    elif load.follow == "administrators":
        here.restore()
    elif load.follow == "nothing":
        here.run({**load.chosen, "max_rows_per_partition": 200}, load.code)
    else:
        found = re.search(load.says, said)
        assert found is not None
        assert "make stop" in said
        assert "make run" in said
        here.run({**load.chosen, load.follow: int(found[1])}, load.code)


def _after(here: Stage, load: Load) -> float:
    """Return the figure of the batches that have begun since."""
    if load.figure == "oldest":
        here.after(2)
        return max(_every(0.7, 8, lambda: here.read().figures()["oldest"]))
    return here.after().figures()[load.figure]


def _every(seconds: float, times: int, read: Callable[[], float]) -> Iterator[float]:
    for _ in range(times):
        yield read()
        time.sleep(seconds)


def _end(here: Stage) -> None:
    """Nothing is wrong once the rows that have waited are read."""
    here.drain()
    here.wait_named(*HEALTHY)


def test_a_slow_function_hides_a_cut_limit(here: Stage, record_property: Note) -> None:
    """Each batch is cut, and most of its time is the function's: the limit is named after it."""
    slow = replace(PACED["a cut limit"], code=SLEEPS.format(seconds=0.1))
    _begin(here, slow)
    said, minute = _named(here, "transform")
    before = minute.figures()["reading"]
    here.run(slow.chosen)
    then, minute = _named(here, "cut")
    between = minute.figures()["reading"]
    _told(record_property, here, "a slow UDF and a cut limit", said, "reading", before, between)
    _follow(here, PACED["a cut limit"], then)
    after = here.after().figures()["reading"]
    _told(record_property, here, "... then", then, "reading", between, after)
    assert before * 1.5 <= between
    assert between * 1.5 <= after
    _end(here)


# -- what ends a job


def test_a_poison_row_is_captured_and_the_corrected_job_goes_on(
    here: Stage, record_property: Note
) -> None:
    _rest(here)
    here.producer.tablets = ALL
    here.run({}, FAILS)
    here.producer.send(100)
    here.job.wait_for_batches(2)
    with here.producer.lock:
        here.producer.change = {"price": POISON}
    here.wait_end()
    said, minute = _named(here, "failed")
    assert "no rate for this price" in said
    assert "make capture failed" in said
    assert "make run" in said
    before = minute.figures()["waiting"]
    here.command("capture", "failed")
    captured = (here.job.project / "tests/captured").glob("*/rows.yson")
    assert any(str(POISON) in file.read_text("utf-8", "replace") for file in captured)
    here.run({}, CORRECTED)
    here.drain()
    after = here.read().figures()["waiting"]
    _told(record_property, here, "a poison row", said, "waiting", before, after)
    assert before > 0
    assert after == 0
    _end(here)


def test_a_wrong_deploy_is_named_and_the_former_version_goes_on(
    here: Stage, record_property: Note
) -> None:
    _rest(here)
    here.producer.tablets = ALL
    here.run({}, CORRECTED)
    here.producer.send(100)
    here.job.wait_for_batches(2)
    here.run({}, WRONG)
    here.wait_end()
    said, minute = _named(here, "failed")
    assert "null in column auction" in said
    row = json.loads(re.search(r"\{\".*\}", said)[0])  # type: ignore[index]
    assert "auction" not in row
    assert here.has_sent(row) or here.job.context.job.processing == "window"
    assert "make run" in said
    before = minute.figures()["waiting"]
    here.run({}, CORRECTED)
    here.drain()
    after = here.read().figures()["waiting"]
    _told(record_property, here, "a wrong deploy", said, "waiting", before, after)
    assert before > 0
    assert after == 0
    _end(here)
