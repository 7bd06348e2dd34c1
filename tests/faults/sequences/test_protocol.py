"""The table of the protocol is the page's, the model's and the simulated driver's."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from tests.faults import protocol
from tests.faults.model.options import Model
from tests.faults.model.transitions import first, steps
from tests.faults.protocol import ORDER, PAGE, START, STEPS
from tests.faults.protocol_calls import recorded
from tests.faults.sequences.job_site import Form, Op, Site
from tests.support import simulated_driver
from tests.support.project import ROOT

TRAVELS = "packages/ytstream/HOW_A_BATCH_TRAVELS.md"


def _in_order(wanted: Sequence[str], found: Sequence[str]) -> bool:
    rest = iter(found)
    return all(name in rest for name in wanted)


def test_each_order_is_of_steps_of_the_table() -> None:
    named = {*START, *ORDER[True], *ORDER[False]}
    assert named <= {*STEPS}
    # The others are of a query's start, of an idle one, and of a refusal.
    assert {*STEPS} - named == {"read logs", "publish", "remove", "watch", "purge"}


def test_the_page_numbers_the_steps_in_their_order_and_names_their_modules() -> None:
    page = (ROOT / TRAVELS).read_text(encoding="utf-8").partition("## One micro-batch")[2]
    told = re.split(r"^\d\. \*\*(\w+)\.\*\*", page.partition("\n## ")[0], flags=re.MULTILINE)
    assert told[1::2] == [*PAGE]
    for in_transaction in (True, False):
        assert _in_order([step for steps in PAGE.values() for step in steps], ORDER[in_transaction])
    for text, (word, names) in zip(told[2::2], PAGE.items(), strict=True):
        for name in names:
            module = STEPS[name].function.removeprefix("ytstream.").rpartition(".")[0]
            assert module == "query.batch" or f"`{module.replace('.', '/')}.py`" in text, word


@pytest.mark.parametrize("in_transaction", [True, False])
def test_the_model_takes_the_steps_in_their_order(in_transaction: bool) -> None:
    guarantee = "transactional" if in_transaction else "replaying"
    model = Model(guarantee, drivers=1, starts=1, faults=0, most_rows=1)
    state, taken = first(model), list[str]()
    while taken.count("write commits") < 2:
        step, state = next(iter(steps(model, state)))
        taken += step.names
    assert taken[: len(START)] == [*START]
    second = [place for place, name in enumerate(taken) if name == "plan"][1]
    # A step that the model joins with the one before is not seen by anybody.
    rest = [name for name in ORDER[in_transaction] if name != "commit T"]
    assert taken[second : second + len(rest)] == rest


@pytest.mark.parametrize("guarantee", ["transactional", "at_least_once"])
def test_the_simulated_driver_calls_the_runtime_in_that_order(
    monkeypatch: pytest.MonkeyPatch, guarantee: str
) -> None:
    site = Site(Form(guarantee, "aggregate" if guarantee == "transactional" else "map"))
    calls = recorded(monkeypatch)
    site.play(Op("send", 3))
    site.play(Op("batch"))
    assert _in_order(START, calls)
    ran = [name for name in ORDER[guarantee == "transactional"] if name in {*calls}]
    assert {"verify_head", "verify_start", "audit", "write_head"} <= {*ran}
    assert calls[-len(ran) :] == ran


def test_the_driver_without_spark_leaves_what_a_batch_leaves_outside_its_transaction() -> None:
    for in_transaction, written in simulated_driver.STEPS.items():
        assert protocol.leaves(in_transaction=in_transaction) == written
