"""One Structured Streaming job on YTsaurus: queues -> transform -> output table."""

import os
import signal
import sys

# The imports take a second. The first argument is "-m" while `python -m` looks for __main__.
if os.path.basename(sys.argv[0]) in ("-m", "main.py", "submit.py"):

    def _leave(number: int, _frame: object) -> None:
        os.write(2, b"stopped before the start\n")
        os._exit(128 + number)

    for _number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(_number, _leave)

# Before any import of pyspark, whose types and readers it extends (SPYT, spyt/__init__.py).
import spyt  # noqa: F401
