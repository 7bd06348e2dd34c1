"""`alerts`: rules for Prometheus."""

from pathlib import Path

from ytstream.commands.command import Command
from ytstream.job import Job
from ytstream.settings.job_settings import Settings


def _offline(job: Job, settings: Settings, config: Path) -> int:
    from ..status import alert_rules

    print(alert_rules.text(job, settings, config))
    return 0


COMMAND = Command(
    name="alerts",
    help="Print rules for Prometheus, for what `metrics` serves and what the cluster exports.",
    offline=_offline,
)
