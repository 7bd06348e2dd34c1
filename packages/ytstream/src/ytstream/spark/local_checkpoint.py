"""The checkpoint of a query without state: a folder on the driver's disk, for this query only.

The ledger holds every offset, no start uses an older folder and no executor reads it, so none of it
has to outlive the query. State has to, and its checkpoint is on Cypress
(recovery/checkpoint_repair.py).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from ..errors import JobError
from ..errors.error_codes import ErrorCode

_FULL = tuple(map(os.strerror, (errno.ENOSPC, errno.EDQUOT)))
"""What Java says of the two, in a trace of any depth."""


def made_folder() -> TemporaryDirectory[str]:
    """Make the folder, which is removed with the object.

    In a job of YTsaurus in its sandbox, which the node removes with it; elsewhere where temporary
    files are. Raises JobError when the disk takes none.
    """
    sandbox = os.getcwd() if "YT_OPERATION_ID" in os.environ else None
    try:
        return TemporaryDirectory(
            prefix="ytstream-checkpoint-", dir=sandbox, ignore_cleanup_errors=True
        )
    except OSError as error:
        raise JobError(
            f"the driver cannot make the folder of its checkpoint: {error}",
            "free some space there, or name another folder in TMPDIR",
            code=ErrorCode.DISK_FULL,
        ) from error


@contextmanager
def explained_space(folder: TemporaryDirectory[str] | None) -> Iterator[None]:
    """Raise JobError for an exception of Spark's that says that the disk of ``folder`` is full."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if folder is not None and any(said in str(error) for said in _FULL):
            raise JobError(
                f"the driver's disk is full: Spark cannot write the checkpoint in {folder.name}",
                "free some space there, or name another folder in TMPDIR, and start again: "
                "committed rows are kept",
                code=ErrorCode.DISK_FULL,
            ) from error
        raise
