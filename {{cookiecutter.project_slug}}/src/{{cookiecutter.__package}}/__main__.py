"""``python -m`` this package: hands the job to the runtime's command line."""

import sys
from collections.abc import Sequence

from ytstream import entry


def main(words: Sequence[str] | None = None) -> int:
    """Run one command; ``words`` default to those of the process."""
    entry.leave_on_signals()  # the imports below take two seconds
    from ytstream import cli

    from .job import JOB

    return cli.run(JOB, words)


if __name__ == "__main__":
    sys.exit(main())
