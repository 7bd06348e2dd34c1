"""A job under a load: its process on a minicluster, a producer that never pauses, and `why`."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.faults.two_drivers.job_site import PACKAGE
from tests.journeys.live_job import Live, live
from tests.support.under_load import minute
from tests.support.under_load.minute import Minute
from tests.support.under_load.producer import Producer, producing
from tests.support.waiting import eventually
from ytstream.cluster.client import connect
from ytstream.errors import JobError
from ytstream.settings.job_settings import load
from ytstream_tools.demo.job_process import run_command
from ytstream_tools.why import causes, facts

USUAL: Mapping[str, object] = {
    "max_rows_per_partition": 400, "dyn_batch_size": 400, "trigger_seconds": 1, "connector": "own",
}  # fmt: skip
"""The configuration of a job that is well."""
CONFIG = "config/local.toml"
_LOOK_SECONDS = 1.0
_PATIENCE = 240.0
"""For what a job does on a machine that has other work."""


@dataclass
class Stage:
    """The job: configure it, put it under a load, ask `why`."""

    job: Live
    producer: Producer
    _transform: str = ""
    """transform.py without what a load adds."""
    _running: tuple[str, Mapping[str, object]] | None = None

    @property
    def client(self) -> Any:
        """The cluster."""
        return self.job.context.client

    # -- the job

    def run(self, chosen: Mapping[str, object], code: str = "") -> None:
        """Let the job run with these settings and this code, as `make run` does.

        One that runs with others is stopped before, with `stop`.
        """
        wanted = (code, {**USUAL, **chosen})
        process = self.job.process
        if wanted == self._running and process is not None and process.exit_code is None:
            return
        self.stop()
        self._write(*wanted)
        self.job.start()
        self._running = wanted

    def stop(self) -> None:
        """Stop the job if it runs; rows that wait stay."""
        process = self.job.process
        if process is not None and process.exit_code is None:
            self.command("stop")
            process.wait(_PATIENCE)

    def _write(self, code: str, chosen: Mapping[str, object]) -> None:
        file, config = self.job.project / f"src/{PACKAGE}/transform.py", self.job.project / CONFIG
        self._transform = self._transform or file.read_text()
        file.write_text(self._transform + code)
        text = config.read_text()
        for name, value in chosen.items():
            line = f"{name} = {value!r}".replace("'", '"')
            text, found = re.subn(rf"^{name} = .*$", line, text, flags=re.M)
            text = text if found else f"{line}\n{text}"
        config.write_text(text)
        settings = load(config, {"YT_PROXY": self.job.cluster.http})
        self.job.context = replace(self.job.context, settings=settings)

    def line_of(self, text: str) -> int:
        """Return the number of the line of transform.py that has the text; 0: none has."""
        lines = (self.job.project / f"src/{PACKAGE}/transform.py").read_text().splitlines()
        return next((number for number, line in enumerate(lines, 1) if text in line), 0)

    def command(self, *words: str) -> str:
        """Call a command of the repository; return what it said."""
        return run_command(PACKAGE, self.job.cluster.http, self.job.project, *words)

    def wait_end(self) -> None:
        """Wait until the process has ended."""
        process = self.job.process
        assert process is not None
        eventually(lambda: process.exit_code is not None, _PATIENCE, said=process.tail, pause=0.5)

    # -- the load

    def slow_down(self, *rules: Mapping[str, Any]) -> None:
        """Let the cluster act so on requests until `restore`."""
        for rule in rules:
            self.job.cluster.client.faults.add(times=None, **rule)

    def restore(self) -> None:
        """Let the cluster serve all requests at once."""
        self.job.cluster.client.faults.clear()

    def drain(self) -> None:
        """Let the job read all rows, and no more come."""
        self.producer.send(0)
        self.job.drain()

    # -- what is said

    def causes(self) -> list[str]:
        """Return the causes that are named now, the first one first.

        All but `restarts`: whoever follows the advice starts the job again, many times here.
        """
        found = facts.collect(self.job.context)
        named = [cause.name for cause, _ in causes.causes_of(found)]
        return [name for name in named if name != "restarts"]

    def wait_named(self, *names: str, also: str = "") -> None:
        """Wait until one of the causes is named first, and the other one as well."""
        said: list[list[str]] = []

        def is_named() -> bool:
            said.append(self.causes())
            return said[-1][:1] in [[name] for name in names] and (not also or also in said[-1])

        eventually(
            is_named,
            _PATIENCE,
            what=f"{names} of `why`",
            said=lambda: f"{said}\n{self.asked()[0]}",
            pause=_LOOK_SECONDS,
        )

    def asked(self) -> tuple[str, Minute, float]:
        """Return what the command says, what the tables hold, and the seconds that passed.

        Nothing moves meanwhile: neither the job nor the producer.
        """
        with self._frozen():
            begin = time.time()
            try:
                said = self.command("why")
            except JobError as error:
                said = str(error)
            return said, self.read(), time.time() - begin

    def read(self) -> Minute:
        """Return what the tables hold now."""
        settings = self.job.context.settings
        return minute.read(self.client, settings.ledger, settings.consumer, settings.queues[0])

    def has_sent(self, row: Mapping[str, Any]) -> bool:
        """Return whether the queue has this row of an output: by its id and its bidder."""
        where = f'event_id = "{row.get("event_id")}" and bidder = {row.get("bidder", 0)}'
        queue = self.job.context.settings.queues[0]
        return any(self.client.select_rows(f"event_id from [{queue}] where {where}"))

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        process = self.job.process
        alive = process is not None and process.exit_code is None
        with self.producer.lock:
            if alive and process is not None:
                os.killpg(process.pgid, signal.SIGSTOP)
            try:
                yield
            finally:
                if alive and process is not None:
                    os.killpg(process.pgid, signal.SIGCONT)

    def after(self, batches: int = 4) -> Minute:
        """Return what the tables hold when so many batches more have ended, of only those.

        The one that is under way, and a first one that makes Spark's plan, are left out.
        """
        since = self.read().last + 1

        def newer() -> Minute | None:
            now = self.read()
            new = [one for one in now.batches if one["number"] > since]
            return replace(now, batches=new) if len(new) >= batches else None

        found: Minute = eventually(newer, _PATIENCE, what="batches", pause=_LOOK_SECONDS)
        return found

    def has_ended(self) -> bool:
        """Return whether the process is over."""
        return self.job.process is None or self.job.process.exit_code is not None


@contextmanager
def stage(folder: Path, processing: str) -> Iterator[Stage]:
    """Generate a job, and start a producer that has nothing to send yet."""
    with live(folder, processing) as job:
        queue = job.context.settings.queues[0]
        client = connect(job.context.settings)
        with producing(Producer(client, queue, job.sample.make(800))) as producer:
            yield Stage(job, producer)
