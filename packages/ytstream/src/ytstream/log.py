"""The job's log: one line a fact, with date and level."""

import logging
from dataclasses import dataclass, field

_log = logging.getLogger("job")

#: Begins the line that says that a query runs; the demonstration waits for it.
RUNNING = "running, epoch "


def say(line: str) -> None:
    """Write one line to standard error, which YTsaurus keeps of every job."""
    _log.info("%s", line)


@dataclass
class Said:
    """Figures that grow for hours: each is said when it passes a limit, and when it has doubled."""

    _figures: dict[str, float] = field(default_factory=dict)

    def is_new(self, what: str, figure: float, limit: float) -> bool:
        """Return whether to say the figure of ``what`` now."""
        if figure < max(limit, 2 * self._figures.get(what, 0)):
            return False
        self._figures[what] = figure
        return True


def set_up() -> None:
    """Configure logging for a command."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    _log.setLevel(logging.INFO)
    logging.getLogger().addFilter(_is_not_of_py4j)
    # PySpark logs errors as JSON besides raising them.
    for kind in ("DataFrame", "SQL"):
        logging.getLogger(f"{kind}QueryContextLogger").setLevel(logging.CRITICAL)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Leave out py4j's traceback of a lost connection, which it logs as root and raises as well.

    See GatewayClient.send_command; a filter of the root logger sees no records of other loggers.
    """
    return record.module != "java_gateway"
