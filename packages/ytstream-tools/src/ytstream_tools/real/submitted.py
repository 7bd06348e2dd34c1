"""The same job as an operation of the server, where the server has SPYT."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ytstream.cluster.client import Client
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.settings.job_settings import token
from ytstream.settings.spark_conf import SPYT_CONF

from ..demo import demo_tables
from ..demo.crash_scenario import Say, drained
from ..demo.demo_tables import OutputCounts
from ..demo.job_process import run_command
from ..demo.job_sample import Sample
from ..repository import root_of
from .own_folder import Trial

ROWS = 2_000
PATIENCE_SECONDS = 900.0


def has_spyt(client: Client) -> bool:
    """Return whether the server has SPYT's global configuration, which spark-submit reads."""
    return client.exists(SPYT_CONF)


def play(trial: Trial, sample: Sample, say: Say) -> Mapping[str, OutputCounts]:
    """Submit the job, send rows, drain it, and compare its outputs with all rows."""
    context, config = trial.context, str(trial.config)
    root, job = root_of(context.job.package), context.job

    def command(*words: str) -> str:
        words = (*words, "--config", config)
        return run_command(
            job.package, context.settings.proxy, root, *words, token=token(context.settings)
        )

    command("provision")
    demo_tables.fill_reference(context, sample)
    sent = _send(trial, sample.make(ROWS, 1))
    say(command("submit").strip())
    _wait(drained(context))
    for row in sample.closing(job, sent):
        sent += _send(trial, [row])
        _wait(drained(context))
    say(command("drain").strip())
    return demo_tables.outcomes(context, sample, sent)


def _send(trial: Trial, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    client, queue = trial.context.client, trial.context.settings.queues[0]
    tablets = int(client.get(f"{queue}/@tablet_count")) if len(rows) > 1 else 1
    demo_tables.produce(client, queue, rows, tablets)
    return list(rows)


def _wait(is_over: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_over():
        if time.monotonic() > deadline:
            raise JobError(
                f"the submitted job has not read its rows after {PATIENCE_SECONDS:.0f} s",
                "`make logs` and `make why` tell more about a job that runs",
                code=ErrorCode.COMMAND_FAILED,
            )
        time.sleep(1)
