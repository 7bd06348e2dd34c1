"""The runtime of a Structured Streaming job on YTsaurus, and all that is shipped with one.

It needs the standard library, pyspark, SPYT and ytsaurus-client only. A job hands one value,
``Job``, to the command line (cli.py). HOW_A_BATCH_TRAVELS.md draws the folders as layers, and
`make lint` checks them (import-linter, pyproject.toml of the template).

Importing this module has no effect on the process and loads neither Spark nor SPYT.
"""

from .settings import client_import  # noqa: F401, I001 - before what imports ytsaurus-client
from .connector.json_of import json_of
from .declaration.checked_state import checked_state
from .declaration.latest_per_key import latest
from .declaration.lookups import lookup
from .errors import JobError, RestartableError
from .job import Job
from .schema.changes import DELETED, newest
from .schema.columns import REJECTED_COLUMNS as REJECTED
from .schema.columns import Column
from .schema.periods import Daily, Every, Hourly, days, minutes
from .version import __version__

__all__ = [
    "DELETED",
    "REJECTED",
    "Column",
    "Daily",
    "Every",
    "Hourly",
    "Job",
    "JobError",
    "RestartableError",
    "__version__",
    "checked_state",
    "days",
    "json_of",
    "latest",
    "lookup",
    "minutes",
    "newest",
]
