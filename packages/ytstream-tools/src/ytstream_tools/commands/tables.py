"""`tables`: the tables that `provision` creates."""

from pathlib import Path

from ytstream.commands.command import Command
from ytstream.job import Job
from ytstream.settings.job_settings import Settings


def _offline(job: Job, settings: Settings, _: Path) -> int:
    from ..status import description

    print(description.tables(job, settings))
    return 0


COMMAND = Command(
    name="tables",
    help="Show the tables that `provision` creates, as YTsaurus describes them.",
    offline=_offline,
)
