"""The runtime of a Structured Streaming job on YTsaurus; an upgrade replaces this folder.

A job hands one value, ``Job``, to the command line (cli.py). The folders form floors, and imports
go down only:

    cli  submit  testing  demo
    query/                     Spark: session, sources, the query, its supervisor
    guarantees/   recovery/    one class for each guarantee; checkpoint and consumer before a start
    provision     job          the tables on the cluster; the values that everything is handed
    schema  config  cluster  confs  positions
    columns  table  errors  entry

Importing this module has no effect on the process and loads neither Spark nor SPYT.
"""

from .columns import Column
from .errors import JobError, RestartableError
from .job import Job
from .version import __version__

__all__ = ["Column", "Job", "JobError", "RestartableError", "__version__"]
