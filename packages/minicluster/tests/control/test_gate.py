"""Fault rules and the journal, at the gate itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from minicluster.control.faults import HangUp, Rule
from minicluster.control.gate import Gate
from minicluster.control.journal import Call
from minicluster.control.path import travel
from minicluster.core.errors import YtError


def run(scenario: Callable[[Gate], Awaitable[None]]) -> None:
    async def body() -> None:
        await scenario(Gate(lambda: None))

    asyncio.run(asyncio.wait_for(body(), 30))


async def outcomes(gate: Gate, *calls: Call) -> list[str]:
    """Return the outcome of each call: "ok", "fail", "hang up"."""
    found = []
    for call in calls:
        try:
            await gate.enter(call)
            await gate.leave(call)
        except YtError:
            found.append("fail")
        except HangUp:
            found.append("hang up")
        else:
            found.append("ok")
    return found


def call(method: str = "get", proxy: str = "http", label: str | None = None, **args: Any) -> Call:
    return Call("http", proxy, method, args, label)


def test_the_journal_says_how_long_a_request_took() -> None:
    async def scenario(gate: Gate) -> None:
        await gate.enter(one := call())
        assert one.entry.get("seconds") is None
        await gate.leave(one)
        assert one.entry["seconds"] > 0

    run(scenario)


def test_skip_and_times() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("fail", "get", skip=1, times=2))
        calls = [call("get"), call("set"), call("get"), call("get"), call("get")]
        assert await outcomes(gate, *calls) == ["ok", "ok", "fail", "fail", "ok"]
        assert (gate.rule(rule).seen, gate.rule(rule).hits) == (4, 2)
        assert gate.rule(rule).first_hit == calls[2].entry["n"]

    run(scenario)


@pytest.mark.parametrize(
    ("rule", "hit"),
    [
        ({"where": {"path": "//a"}}, True),
        ({"where": {"path": "//"}}, False),
        ({"where": {"path": "*/commits/*"}}, False),
        ({"where": {"path": "//*"}}, True),
        ({"where": {"n": 5}}, True),
        ({"where": {"n": 6}}, False),
        ({"where": {"absent": 1}}, False),
        ({"where": {"paths": "//y"}}, True),
        ({"method": ["set", "get"]}, True),
        ({"method": "set"}, False),
        ({"proxy": "http"}, True),
        ({"proxy": "127.0.0.1:1"}, False),
        ({"label": "phase 2"}, True),
        ({"label": "phase 1"}, False),
    ],
)
def test_what_a_rule_matches(rule: dict[str, Any], hit: bool) -> None:
    async def scenario(gate: Gate) -> None:
        await gate.add(Rule("fail", **rule))
        found = await outcomes(gate, call(label="phase 2", path="//a", n=5, paths=["//x", "//y"]))
        assert found == (["fail"] if hit else ["ok"])

    run(scenario)


def test_failures_carry_the_given_error_before_and_after() -> None:
    async def scenario(gate: Gate) -> None:
        for when in ("before", "after"):
            error = {"code": 901, "message": when, "attributes": {"user": "x"}}
            await gate.add(Rule("fail", when=when, error=error))
        first = call()
        with pytest.raises(YtError) as caught:
            await gate.enter(first)
        assert (caught.value.code, caught.value.message) == (901, "before")
        await gate.enter(first)
        with pytest.raises(YtError) as caught:
            await gate.leave(first)
        assert (caught.value.attributes, caught.value.message) == ({"user": "x"}, "after")

    run(scenario)


def test_a_rule_does_not_act_on_the_call_that_arms_it() -> None:
    async def scenario(gate: Gate) -> None:
        first = await gate.add(Rule("delay", "get", when="after", seconds=0))
        await gate.add(Rule("lose_reply", "get", armed_by=first))
        assert await outcomes(gate, call(), call(), call()) == ["ok", "hang up", "ok"]

    run(scenario)


def test_a_lost_reply_is_applied_first() -> None:
    async def scenario(gate: Gate) -> None:
        await gate.add(Rule("lose_reply"))
        lost = call()
        await gate.enter(lost)
        with pytest.raises(HangUp):
            await gate.leave(lost)

    run(scenario)


def test_a_delay_ends_when_its_rule_is_removed() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("delay", "get"))
        held = asyncio.create_task(outcomes(gate, call("get")))
        await gate.wait_hit(rule, 1, 10)
        assert await outcomes(gate, call("set")) == ["ok"]
        assert not held.done()
        await gate.remove(rule)
        assert await held == ["ok"]

    run(scenario)


def test_a_delay_ends_by_itself() -> None:
    async def scenario(gate: Gate) -> None:
        await gate.add(Rule("delay", seconds=0.01))
        assert await outcomes(gate, call()) == ["ok"]

    run(scenario)


# Held requests


async def applied(gate: Gate, given: Call, done: list[str], error: YtError | None = None) -> str:
    """The answer to a call that notes its method in `done` when it is applied."""

    async def apply() -> str:
        done.append(given.method)
        if error is not None:
            raise error
        return f"answer to {given.method}"

    return await travel(gate, given, apply)


def test_a_late_call_loses_its_connection_at_once_and_is_applied_on_release() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("apply_late", "commit"))
        done: list[str] = []
        with pytest.raises(HangUp):
            await applied(gate, call("commit"), done)
        assert await applied(gate, call("get"), done) == "answer to get"
        assert await applied(gate, call("commit"), done) == "answer to commit"
        assert [entry.get("held") for entry in gate.journal.entries] == [True, None, None]
        (entry,) = await gate.release(rule, 10)
        assert done == ["get", "commit", "commit"]
        assert (entry["held"], entry["error"], entry["fault"]) == (False, None, "apply_late")
        assert await gate.release(rule, 10) == []

    run(scenario)


def test_what_a_late_call_meets_is_in_its_entry() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("apply_late"))
        with pytest.raises(HangUp):
            await applied(gate, call(), [], YtError(1700, "conflict"))
        (entry,) = await gate.release(rule, 10)
        assert (entry["held"], entry["error"]) == (False, {"code": 1700, "message": "conflict"})
        assert entry is gate.journal.entries[0]

    run(scenario)


def test_a_held_call_is_answered_on_release() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("hold", times=None))
        done: list[str] = []
        calls = [asyncio.create_task(applied(gate, call(name), done)) for name in ("a", "b")]
        await gate.wait_hit(rule, 2, 10)
        assert done == []
        assert [entry["method"] for entry in await gate.release(rule, 10)] == ["a", "b"]
        assert await asyncio.gather(*calls) == ["answer to a", "answer to b"]
        later = asyncio.create_task(applied(gate, call("c"), done))
        await gate.wait_hit(rule, 3, 10)
        assert done == ["a", "b"]
        await gate.remove(rule)
        assert await later == "answer to c"

    run(scenario)


def test_a_held_call_outlives_who_waits_for_its_answer() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("hold"))
        done: list[str] = []
        waiter = asyncio.create_task(applied(gate, call("a"), done))
        await gate.wait_hit(rule, 1, 10)
        for _ in range(10):
            await asyncio.sleep(0)  # until it waits for the answer and nothing else
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        await gate.release(rule, 10)
        assert done == ["a"]

    run(scenario)


def test_all_rules_removed_let_all_calls_go() -> None:
    async def scenario(gate: Gate) -> None:
        for method in ("a", "b"):
            await gate.add(Rule("hold", method))
        done: list[str] = []
        calls = [asyncio.create_task(applied(gate, call(name), done)) for name in ("a", "b")]
        for rule in list(gate.rules):
            await gate.wait_hit(rule, 1, 10)
        await gate.remove()
        assert await asyncio.gather(*calls) == ["answer to a", "answer to b"]

    run(scenario)


def test_a_release_does_not_wait_for_ever() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("apply_late", "a"))

        async def apply() -> None:
            await asyncio.Event().wait()

        with pytest.raises(HangUp):
            await travel(gate, call("a"), apply)
        with pytest.raises(YtError, match="not finished"):
            await gate.release(rule, 0.01)

    run(scenario)


def test_waiting_for_a_hit_that_does_not_come() -> None:
    async def scenario(gate: Gate) -> None:
        rule = await gate.add(Rule("fail"))
        with pytest.raises(YtError, match="was hit 0 times, not 1"):
            await gate.wait_hit(rule, 1, 0.01)

    run(scenario)


@pytest.mark.parametrize("of", ["pid", "pgid"])
def test_kill(of: str) -> None:
    async def scenario(gate: Gate) -> None:
        sleeper = "import time; time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", sleeper], start_new_session=True) as victim:
            rule: dict[str, Any] = {of: victim.pid}
            await gate.add(Rule("kill", "commit", **rule))
            assert await outcomes(gate, call("get"), call("commit")) == ["ok", "hang up"]
            assert victim.wait(10) == -signal.SIGKILL

    run(scenario)


@pytest.mark.parametrize("of", ["pid", "pgid"])
def test_stop(of: str) -> None:
    async def scenario(gate: Gate) -> None:
        sleeper = "import time; time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", sleeper], start_new_session=True) as victim:
            rule: dict[str, Any] = {of: victim.pid}
            await gate.add(Rule("stop", "commit", **rule))
            assert await outcomes(gate, call("get"), call("commit")) == ["ok", "ok"]
            _, status = os.waitpid(victim.pid, os.WUNTRACED)
            assert (os.WIFSTOPPED(status), os.WSTOPSIG(status)) == (True, signal.SIGSTOP)
            os.kill(victim.pid, signal.SIGCONT)
            victim.terminate()
            assert victim.wait(10) == -signal.SIGTERM

    run(scenario)


class FakeProxy:
    """What the gate wants of an RPC proxy."""

    is_up = True

    async def down(self) -> None:
        self.is_up = False

    async def up(self) -> None:
        self.is_up = True


def test_proxy_down() -> None:
    async def scenario(gate: Gate) -> None:
        proxy = FakeProxy()
        gate.proxies["p"] = proxy
        await gate.add(Rule("proxy_down", proxy="p"))
        assert await outcomes(gate, call(proxy="q"), call(proxy="p")) == ["ok", "hang up"]
        assert not proxy.is_up
        await gate.set_proxy("p", up=True)
        assert proxy.is_up
        with pytest.raises(YtError, match="No such proxy"):
            await gate.set_proxy("nowhere", up=False)

    run(scenario)


def test_the_journal() -> None:
    async def scenario(gate: Gate) -> None:
        gate.label = "warm-up"
        await outcomes(gate, call("get", path="//a"), call("get", label="own"), call("set"))
        assert gate.journal.counts == {"get": 2, "set": 1}
        shown = [(entry["method"], entry["args"], entry["label"]) for entry in gate.journal.entries]
        assert shown[0] == ("get", {"path": "//a"}, "warm-up")
        assert [label for *_, label in shown] == ["warm-up", "own", "warm-up"]

    run(scenario)


@pytest.mark.parametrize(
    "wrong",
    [
        {"action": "explode"},
        {"action": "fail", "when": "during"},
        {"action": "hold", "when": "after"},
        {"action": "apply_late", "when": "after"},
        {"action": "kill"},
        {"action": "stop"},
        {"action": "kill", "pid": 1},
        {"action": "kill", "pgid": 0},
        {"action": "kill", "pid": -5},
        {"action": "kill", "pid": os.getpid(), "pgid": os.getpid()},
        {"action": "fail", "error": {"code": 1}},
    ],
)
def test_wrong_rules(wrong: dict[str, Any]) -> None:
    with pytest.raises(YtError):
        Rule(**wrong)


def test_what_became_of_a_call_is_recorded() -> None:
    async def scenario(gate: Gate) -> None:
        told: list[tuple[str, str | None]] = []
        gate.journal.listeners.append(lambda call, seconds: told.append((call.method, call.fault)))
        await gate.add(Rule("fail", "a", error={"code": 5, "message": "no"}))
        await gate.add(Rule("lose_reply", "b"))
        await outcomes(gate, call("a"), call("b"), call("c"))
        assert told == [("a", "fail"), ("b", "lose_reply"), ("c", None)]
        assert [(entry["error"], entry["fault"]) for entry in gate.journal.entries] == [
            ({"code": 5, "message": "no"}, "fail"),
            (None, "lose_reply"),
            (None, None),
        ]

    run(scenario)
