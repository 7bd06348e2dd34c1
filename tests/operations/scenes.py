"""What happens to a submitted job, scene by scene; each returns figures counted from the tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.operations.cluster import Site

ROWS = 4_000


def undisturbed(here: Site) -> dict[str, Any]:
    """Submit, read the queues to their end, stop."""
    here.provision()
    here.send(ROWS)
    here.submit()
    here.wait_drained()
    here.send_closing()
    here.stop()
    return {**here.counted(), **what_jobs_held(here)}


def what_jobs_held(here: Site) -> dict[str, Any]:
    """Return what jobs said of themselves, if the project's transform.py has PROBE."""
    said = [
        line.removeprefix("PROBE ")
        for operation in here.operations()
        for job in operation.jobs
        for line in here.stderr(operation, job).splitlines()
        if line.startswith("PROBE ")
    ]
    return {"probes": said}


SCENES: dict[str, Callable[[Site], dict[str, Any]]] = {"undisturbed": undisturbed}
