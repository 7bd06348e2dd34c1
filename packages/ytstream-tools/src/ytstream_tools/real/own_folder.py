"""A copy of the job for a trial: the same job, with tables and queues in a folder of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yt.common import YtError

from ytstream.cluster import operation
from ytstream.cluster.client import client_of, connect, first_line
from ytstream.guarantees import guarantee_of
from ytstream.job import Job, JobContext
from ytstream.settings import toml_file
from ytstream.settings.job_settings import Settings, load, token


@dataclass(frozen=True)
class Trial:
    """The job on the server, and the file of its configuration."""

    context: JobContext
    config: Path


@contextmanager
def trial(
    job: Job, settings: Settings, config: Path, proxy: str, parent: str, build: Path
) -> Iterator[Trial]:
    """Give the job a folder below ``parent`` on the server, and remove it in the end.

    The new configuration is a file in ``build`` that extends ``config``.
    """
    home = f"{parent}/ytstream-real-{uuid.uuid4().hex[:8]}"
    file = build / "real.toml"
    file.write_text(toml_file.dump(values(settings, config, proxy, home)), encoding="utf-8")
    found = load(file, {})
    client: Any = connect(found)
    client.create("map_node", home, recursive=True)
    context = JobContext(client, found, job, guarantee_of(job), file)
    try:
        yield Trial(context, file)
    finally:
        _remove(context, home)


def values(settings: Settings, config: Path, proxy: str, home: str) -> dict[str, Any]:
    """Return the keys that differ from those of the file ``config``, whose settings are these."""
    given: dict[str, Any] = {
        "extends": str(config.absolute()),
        "proxy": proxy,
        "queues": [f"{home}/queue-{number}" for number, _ in enumerate(settings.queues)],
        "create_queues": True,
        "start_from": "earliest",
        "consumer": f"{home}/consumer",
        "checkpoint": f"{home}/checkpoint",
        "ledger": f"{home}/ledger",
        "outputs": {name: f"{home}/output-{name}" for name in settings.outputs},
        "submit": {"alias": f"*{home.removeprefix('//')}"},
    }
    return given | ({"reference": f"{home}/reference"} if settings.reference is not None else {})


def _remove(context: JobContext, home: str) -> None:
    """End what still runs, take the registrations back, and remove the folder.

    Nothing is tried for long: a server in a container may be gone.
    """
    settings = context.settings
    client: Any = client_of(settings.proxy, token(settings), patient=False)
    with suppress(YtError, OSError):
        found = operation.get(client, alias=settings.alias)
        if found is not None:
            print(*operation.abort(client, found, "the trial is over"), sep="\n", end="")
    for queue in settings.queues:
        with suppress(YtError, OSError):
            client.unregister_queue_consumer(queue, settings.consumer)
    try:
        client.remove(home, recursive=True, force=True)
    except (YtError, OSError) as error:
        print(f"{home} is still there: {first_line(error)}; remove it by hand", flush=True)
