"""`approve`: keeps the outputs of the sample rows for review."""

from pathlib import Path

from ytstream.commands.command import Command
from ytstream.connector.local_environment import QUICK
from ytstream.declaration import user_errors
from ytstream.job import Job
from ytstream.settings.job_settings import Settings


def _offline(job: Job, settings: Settings, _: Path) -> int:
    from ytstream.spark import session

    with user_errors.user_code("sample/ cannot be imported"):
        from sample import SAMPLE

    from ..testing import approved_outputs
    from ..testing.computed_outputs import unconnected

    context = unconnected(job)
    with session.opened(context, QUICK) as spark:
        print(*approved_outputs.approve(spark, context, SAMPLE), sep="\n")
    print("`git diff sample/expected` shows what has changed; `make test` compares from now on")
    return 0


COMMAND = Command(
    name="approve",
    help="Write the outputs of the sample rows to sample/expected/, for `make test`.",
    offline=_offline,
    starts_jvm=True,
    early_jvm=QUICK,
)
