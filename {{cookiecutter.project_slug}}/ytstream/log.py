"""The job's log: one line a fact, with date and level."""

import logging

_log = logging.getLogger("job")

#: Begins the line that says that a query runs; the demonstration waits for it.
RUNNING = "running, epoch "


def say(line: str) -> None:
    """Write one line to standard error, which YTsaurus keeps of every job."""
    _log.info("%s", line)


def set_up() -> None:
    """Configure logging for a command."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    _log.setLevel(logging.INFO)
    # PySpark logs errors as JSON besides raising them.
    for kind in ("DataFrame", "SQL"):
        logging.getLogger(f"{kind}QueryContextLogger").setLevel(logging.CRITICAL)
