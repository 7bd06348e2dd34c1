"""`demo`: the job on a minicluster, killed and counted."""

from pathlib import Path

from ytstream.commands.command import Command
from ytstream.declaration import user_errors
from ytstream.job import Job
from ytstream.settings.job_settings import Settings


def _offline(job: Job, _: Settings, __: Path) -> int:
    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from ..demo import demo_text

    return demo_text.main(job, SAMPLE)


COMMAND = Command(
    name="demo",
    help="Run the job on a minicluster, kill it at the worst moment, and count every row.",
    offline=_offline,
    starts_cluster=True,
    starts_jvm=True,
)
