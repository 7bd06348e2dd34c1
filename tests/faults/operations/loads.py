"""A submitted job under loads: too few cores, and a version that fails after its first batches."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.faults.operations.job_site import FINAL, Site
from tests.support.under_load import minute
from tests.support.under_load.code import FAILS, POISON, SLEEPS
from tests.support.under_load.minute import Minute
from tests.support.under_load.producer import Producer, producing
from ytstream.cluster.client import connect

_BATCHES = 4
"""Batches of the version that the advice has changed."""


def few_cores_and_a_wrong_deploy(here: Site) -> dict[str, Any]:
    """Two cores read four tablets; four do. The next version fails at a row that comes later."""
    source = here.root / "src" / here.package / "transform.py"
    usual = source.read_text()
    _smaller(here)
    source.write_text(usual + SLEEPS.format(seconds=0.025))
    _commit(here, "first")
    here.provision()
    queue = here.context.settings.queues[0]
    rows = here.sample.make(800)
    with producing(Producer(connect(here.context.settings), queue, rows)) as producer:
        producer.send(20)
        here.submit()
        found = {"cores": _few_cores(here, producer)}
        producer.send(0)
        source.write_text(usual)
        first = _commit(here, "without the function")
        here.submit("--replace")
        here.wait_drained()
        producer.send(40)
        source.write_text(usual + FAILS)
        _commit(here, "rated")
        here.submit("--replace")
        found["deploy"] = _wrong_deploy(here, producer, first)
    here.stop()
    return found


def _few_cores(here: Site, producer: Producer) -> dict[str, Any]:
    producer.send(200)
    said, before = _asked(here, producer, "cores")
    text = here.config.read_text()
    assert text.count("executors = 1") == 1
    here.config.write_text(text.replace("executors = 1", "executors = 2"))
    here.submit("--replace")
    after = _after(here)
    return {
        "said": said,
        "differing": min((minute.differing(_text(said), one) for one in before), key=len),
        "before": before[0],
        "after": after,
        "named_after": _why(here).partition(":")[0],
    }


def _wrong_deploy(here: Site, producer: Producer, former: str) -> dict[str, Any]:
    with producer.lock:
        producer.change = {"price": POISON}
    here.wait("the end of the driver", lambda: here.driver().state in FINAL)
    said, before = _asked(here, producer, "failed")
    named = re.search(r"`git checkout (\w+)`", said)
    subprocess.run(["git", "checkout", "-q", named[1] if named else ""], cwd=here.root, check=False)
    here.submit()
    producer.send(0)
    here.wait_drained()
    after = _read(here).figures()
    return {
        "said": said,
        "is_former": named is not None and former.startswith(named[1]),
        "before": before[0],
        "after": after,
    }


def _smaller(here: Site) -> None:
    """Let a batch be small, and few rows be too many."""
    local = here.root / "config" / "local.toml"
    text = re.sub(r"^(max_rows_per_partition|dyn_batch_size) = .*$", r"\1 = 100",
                  local.read_text(), flags=re.M)  # fmt: skip
    local.write_text(text)
    here.configure()


def _commit(here: Site, what: str) -> str:
    """Commit all files; return the commit."""
    names = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*names, "commit", "-q", "-m", what)):
        subprocess.run(["git", *words], cwd=here.root, check=True)
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=here.root, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def _why(here: Site) -> str:
    """Return what the command says, without the line of the cluster."""
    lines = here.command("why").stdout.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("cluster: "))


def _text(said: str) -> str:
    return said.splitlines()[0].partition(": ")[2]


def _asked(here: Site, producer: Producer, cause: str) -> tuple[str, Sequence[Mapping[str, float]]]:
    """Wait until the cause is named; return what is said, and the figures of the moments by then.

    Nothing moves meanwhile: neither the driver nor the producer.
    """

    def asked() -> tuple[str, Sequence[Mapping[str, float]]] | None:
        with producer.lock, _stopped(here):
            begin = time.monotonic()
            said, found = _why(here), _read(here)
            passed = time.monotonic() - begin
        moments = [_with_share(found.figures(passed * step / 10)) for step in range(11)]
        return (said, moments) if said.startswith(f"{cause}:") else None

    found: tuple[str, Sequence[Mapping[str, float]]] = here.wait(f"{cause} of `why`", asked)
    return found


def _with_share(figures: Mapping[str, float]) -> Mapping[str, float]:
    """Return the figures of a moment, with the part of the time in which a batch is under way."""
    busy = 100 * min(1.0, figures["took"] / figures["every"]) if "took" in figures else 0.0
    return {**figures, "busy": busy, "cores": 2.0}


@contextmanager
def _stopped(here: Site) -> Iterator[None]:
    """Stop the driver's processes inside the block."""
    jobs = here.driver().running()
    for job in jobs:
        here.signal(job, signal.SIGSTOP)
    try:
        yield
    finally:
        for job in jobs:
            here.signal(job, signal.SIGCONT)


def _read(here: Site) -> Minute:
    settings = here.context.settings
    return minute.read(here.client, settings.ledger, settings.consumer, settings.queues[0])


def _after(here: Site) -> Mapping[str, float]:
    """Return the figures of the first batches that the new version has ended, without the first."""
    here.wait("batches of the new version", lambda: len(_read(here).batches) > _BATCHES)
    return _read(here).figures()


CASES = {few_cores_and_a_wrong_deploy.__name__: few_cores_and_a_wrong_deploy}
