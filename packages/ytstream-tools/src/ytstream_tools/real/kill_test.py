"""The demo's crash on a server: no rule of a minicluster kills there, this process does."""

from __future__ import annotations

import random
import time
from pathlib import Path

from ytstream.settings.job_settings import token

from ..demo import demo_batches
from ..demo.crash_scenario import (
    CrashScenario,
    DemoResult,
    Say,
    Watch,
    play_with,
    spoilt,
    until,
)
from ..demo.job_sample import Sample
from ..repository import root_of
from .own_folder import Trial

BATCHES_PER_KILL = 4
"""Full batches that wait for each kill: the driver dies with rows left to read."""
SPREAD_SECONDS = 1.0
"""The kill comes at a random moment of so long, about that of a batch of local.toml."""


def play(trial: Trial, sample: Sample, log: Path, kills: int, say: Say, watch: Watch) -> DemoResult:
    """Kill the job ``kills`` times in the middle of its work, and count the rows."""

    def kill(here: CrashScenario, goal: int) -> int:
        say(f"starting Spark with SPYT, {kills + 1} times in all")
        for _ in range(kills):
            say(f"kill -9 with {_kill_once(here, goal)} of {goal} rows in the ledger")
        return kills

    context = trial.context
    here = CrashScenario(
        context=context,
        sample=sample,
        root=root_of(context.job.package),
        log=log,
        watch=watch,
        words=("--config", str(trial.config)),
        token=token(context.settings),
    )
    return play_with(here, kill, BATCHES_PER_KILL * kills, say)


def _kill_once(here: CrashScenario, goal: int) -> int:
    """Kill the driver after its first batch; return how many rows the ledger has then."""
    client, ledger = here.context.client, here.context.settings.ledger
    before = demo_batches.rows_read(client, ledger)

    with here.start() as process:
        with here.growth("until the kill", goal) as look:
            until(
                lambda: (
                    process.exit_code is not None or demo_batches.rows_read(client, ledger) > before
                ),
                look,
                process,
            )
        time.sleep(random.uniform(0, SPREAD_SECONDS))
        if process.exit_code is not None:
            raise spoilt("the job ended before its kill", process)
        process.kill()
    return demo_batches.rows_read(client, ledger)
