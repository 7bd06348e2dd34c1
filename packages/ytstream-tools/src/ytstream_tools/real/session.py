"""`make real`: this job on a server, killed and counted, then submitted where that can be."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ytstream.job import Job
from ytstream.settings import environment
from ytstream.settings.job_settings import Settings, token

from ..demo import demo_text
from ..demo.demo_tables import OutputCounts
from ..demo.job_sample import Sample
from ..repository import root_of
from . import container, kill_test, readiness, submitted
from .container import Say, Server
from .image import IMAGE
from .own_folder import trial

BUILD = Path("build")


@dataclass(frozen=True)
class Request:
    """What a person asks for: a server that runs at ``proxy``, or an image to start."""

    proxy: str = ""
    image: str = IMAGE
    folder: str = "//tmp"
    """The folder on the server in which the trials make folders of their own."""
    kills: int = 3


@contextmanager
def server(proxy: str, image: str, folder: str, say: Say) -> Iterator[Server]:
    """Give a server that is ready: the one at ``proxy``, or else a container of the image.

    Raises JobError.
    """
    if proxy:
        readiness.wait(proxy, token_for(proxy), folder, say)
        yield Server(proxy, "", lambda: None)
        return
    environment.leave_clusters()  # another cluster's token is not for the container
    with container.started(image, say) as found:
        readiness.wait(found.proxy, token_for(found.proxy), folder, say, found.verify)
        readiness.raise_limits(found.proxy, token_for(found.proxy))
        yield found


def token_for(proxy: str, shell: Mapping[str, str] = os.environ) -> str:
    """Return the token for the server. Raises JobError when it needs one and none is set."""
    return token(Settings(proxy, (), "", "", "", {}), shell)


def run(job: Job, settings: Settings, config: Path, sample: Sample, request: Request) -> int:
    """Return 0 when the guarantee held, else 1. Raises JobError when something cannot be done."""
    say = demo_text.console.print
    build = root_of(job.package) / BUILD
    build.mkdir(exist_ok=True)
    with server(request.proxy, request.image, request.folder, say) as found:
        say(f"YTsaurus {readiness.version(found.proxy)} at {found.proxy}")
        here = job, settings, config, found.proxy, request.folder, build
        with trial(*here) as one, demo_text.own_log(build, "real") as log:
            say(f"the job's own log: {log}")
            result = kill_test.play(one, sample, log, request.kills, say, demo_text.bar)
            demo_text.show(one.context.job, result)
            is_kept = demo_text.is_kept(one.context.job, result)
            has_spyt = submitted.has_spyt(one.context.client)
        if not has_spyt:
            print("SUBMIT skipped: the server has no SPYT", flush=True)
            return int(not is_kept)
        with trial(*here) as one:
            outcomes = submitted.play(one, sample, say)
            print(submit_line(one.context.job, outcomes), flush=True)
            is_kept &= demo_text.are_kept(one.context.job, outcomes)
    return int(not is_kept)


def submit_line(job: Job, outcomes: Mapping[str, OutputCounts]) -> str:
    """Return the line of the submitted job, as the RESULT line of the demo."""
    lost = sum(one.lost for one in outcomes.values())
    duplicated = sum(one.duplicated for one in outcomes.values())
    return (
        f"SUBMIT guarantee={job.guarantee} rows_out={outcomes['output'].rows_out} "
        f"lost={lost} duplicated={duplicated}"
    )
