"""`confs`: every setting with its value and its reason."""

from pathlib import Path

from ytstream.commands.command import Command
from ytstream.job import Job
from ytstream.settings import toml_file
from ytstream.settings.job_settings import Settings


def _offline(job: Job, settings: Settings, config: Path) -> int:
    from ..status import description

    origins = toml_file.read(config).origins
    shown = description.conf_table(job, settings), description.submit_table(settings, origins)
    print(*shown, sep="\n\n")
    return 0


COMMAND = Command(
    name="confs",
    help="Show every Spark setting with its reason, and [submit] with the file of each value.",
    offline=_offline,
)
