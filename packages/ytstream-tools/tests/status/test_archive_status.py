"""What `status`, metrics, `why` and `seal` say of archives; simulated batches, without Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.archives import COLUMNS, DAY, HOUR, Driver, declared
from tests.support.helpers import ContextOf, refusal
from ytstream import Hourly, minutes
from ytstream.provisioning import job_objects
from ytstream.schema.periods import moment
from ytstream.sealing import completeness
from ytstream_tools.status import archive_status, sealing
from ytstream_tools.status.alert_rules import alerts
from ytstream_tools.status.prometheus import _of_archive
from ytstream_tools.why import causes


@pytest.fixture
def driver(provisioned_of: ContextOf, monkeypatch: pytest.MonkeyPatch) -> Driver:
    archive = Hourly("date_time", lateness=minutes(10))
    context = declared(provisioned_of("transactional"), archive, COLUMNS)
    job_objects.provision(context)
    driver = Driver(context)
    monkeypatch.setattr(completeness, "bound", lambda *_: driver.complete)
    return driver


def _status(driver: Driver, second: float) -> archive_status.ArchiveStatus:
    (found,) = archive_status.read(driver.context, moment(DAY + second))
    return found


def test_the_open_period_and_the_last_table(driver: Driver) -> None:
    assert "no period is open" in _status(driver, 0).text
    driver.batch(10, HOUR + 5)
    driver.batch(20, HOUR + 6)
    found = _status(driver, 2 * HOUR)
    assert (found.rows, found.pieces, found.tables) == (4, 4, 2)
    assert found.open.endswith("T00:00:00Z")
    assert found.overdue_seconds == HOUR - 600
    assert "2 tables waiting" in found.text
    driver.seal(HOUR + 600)
    found = _status(driver, HOUR + 700)
    assert (found.rows, found.tables, found.last_rows) == (2, 1, 2)
    assert found.last.endswith("T00:00:00Z")
    assert found.complete_until.endswith("T01:00:00Z")
    assert found.overdue_seconds == 0
    samples = {name: value for name, _, value in _of_archive(found)}
    assert samples["ytstream_archive_staged_rows"] == 2
    until = samples["ytstream_archive_complete_until_timestamp_seconds"]
    assert until == DAY + HOUR


def test_an_archive_has_an_alert(driver: Driver) -> None:
    job = driver.context.job
    names = [rule.name for rule in alerts(job, driver.settings)]
    assert "YtstreamPeriodNotSealed" in names
    without = [rule.name for rule in alerts(replace(job, static=()), driver.settings)]
    assert "YtstreamPeriodNotSealed" not in without


@pytest.mark.thorough
def test_a_person_closes_a_period_by_its_name(driver: Driver) -> None:
    driver.batch(10, HOUR + 5)
    name = f"{moment(DAY):%Y-%m-%dT%H:%M:%SZ}"
    said = [*sealing.seal(driver.context, name, None, dry_run=True)]
    assert any("1 row in 1 table" in line for line in said)
    assert any("become a further table of it" in line for line in said)
    assert driver.seal(0) == []
    assert "nothing was changed" in said[-1]
    [*sealing.seal(driver.context, name, None)]
    assert driver.seal(0) == ["00:00:00Z"]
    assert "is closed" in refusal(lambda: [*sealing.seal(driver.context, name, None)])
    later = "2999-01-01T00:00:00Z"
    assert "has not begun" in refusal(lambda: [*sealing.seal(driver.context, later, None)])
    assert "cannot read" in refusal(lambda: [*sealing.seal(driver.context, "ten", None)])
    assert "not an archive" in refusal(lambda: [*sealing.seal(driver.context, name, "other")])


def test_why_names_the_tablet_that_holds_a_period_open(driver: Driver) -> None:
    driver.batch(10)
    one = replace(_status(driver, 2 * HOUR), overdue_seconds=3_000.0)

    def partition(number: int, lag: int, seconds: float) -> Any:
        return _Fake(queue="//q", number=number, lag=lag, seconds=seconds)

    status = _Fake(archives=[one], partitions=[partition(0, 5, 10.0), partition(1, 7, 4_000.0)])
    found = causes._unsealed(_facts(status))
    assert found is not None
    assert "7 rows of //q, tablet 1, wait" in found.said
    idle = causes._unsealed(_facts(_Fake(archives=[one], partitions=[])))
    assert idle is not None
    assert "has read all rows" in idle.said
    late = timedelta(minutes=1).total_seconds()
    fresh = _Fake(archives=[replace(one, overdue_seconds=late)], partitions=[])
    assert causes._unsealed(_facts(fresh)) is None


class _Fake:
    """An object with these attributes."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


def _facts(status: Any) -> Any:
    return _Fake(status=status, make=lambda target: f"make {target}")
