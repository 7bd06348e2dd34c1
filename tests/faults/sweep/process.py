"""`tests.faults.sweep.process VARIANT PROXY ROWS`: the job as a process, as `run` runs it.

ROWS is how many rows of a partition a micro-batch has at most.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack

from tests.faults.sweep.lane import context_of
from tests.faults.sweep.variants import variant_of
from tests.support.jvm import submit_args
from ytstream import log
from ytstream.errors import JobError, RestartableError
from ytstream.query import supervisor
from ytstream.recovery.lock import alone
from ytstream.spark.jvm_process import explained_jvm, leave_if_hung


def main(variant: str, proxy: str, rows: str) -> int:
    """Return the exit code of `run`: 0, or 1 for a refusal or failure."""
    os.environ.setdefault("YTSTREAM_SUBMIT_ARGS", submit_args())
    context, _ = context_of(variant_of(variant), proxy, int(rows))
    try:
        with explained_jvm(), ExitStack() as session, alone(context):
            supervisor.run(context, session)
    except (JobError, RestartableError) as error:
        log.fail(str(error), error.code)
        return 1
    return 0


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    leave_if_hung(code)
    raise SystemExit(code)
