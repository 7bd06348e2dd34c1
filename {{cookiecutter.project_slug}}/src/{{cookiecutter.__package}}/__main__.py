"""``python -m`` this package: hands the job to the runtime's command line."""

import sys
from collections.abc import Sequence

from ytstream import Job, entry


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; ``words`` default to those of the process."""
    entry.leave_on_signals()  # the import below takes two seconds
    from ytstream import cli

    return cli.run(str(__package__), _job, words)


def _job() -> Job:
    from .job import JOB

    return JOB


if __name__ == "__main__":
    sys.exit(main())
