"""The runtime of a Structured Streaming job on YTsaurus; an upgrade replaces this folder.

A job hands one value, ``Job``, to the command line (cli.py). The folders form floors, and imports
go down only:

    cli
    submitting/  operating/  testing
    query/  demo  describe  status     Spark: session, sources, the query, its supervisor
    doctor/                            reads jobs that were written without this runtime
    guarantees/  recovery/  provision  retention  declaration  user_errors
    job                                the values that everything is handed
    operation  own_operation
    tablets  ledger  plan  user_state
    connector/                         all that is taken from inside Spark and SPYT
    schema  cluster
    sizes
    columns  config  shipped  repository
    rules  submit_settings  toml_file
    addresses  confs  pairs  positions  latest  table  log  errors  entry  version

Importing this module has no effect on the process and loads neither Spark nor SPYT.
"""

from .columns import REJECTED_COLUMNS as REJECTED
from .columns import Column
from .errors import JobError, RestartableError
from .job import Job
from .latest import latest
from .user_state import checked_state
from .version import __version__

__all__ = [
    "REJECTED",
    "Column",
    "Job",
    "JobError",
    "RestartableError",
    "__version__",
    "checked_state",
    "latest",
]
