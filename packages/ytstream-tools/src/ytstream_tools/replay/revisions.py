"""Which commit is deployed, and its files: from what `submit` has written, and from git."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from yt.common import YtError

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance import stop_request
from ytstream.job import JobContext
from ytstream.settings import environment

from ..submitting.version_history import StartState, VersionHistory

_NAME_IT = "name the commit to compare with: --commit REVISION"


def deployed(context: JobContext) -> str:
    """Return the commit that `submit` has noted: in the operation, else in its last record.

    The cluster forgets operations; a record of a start stays beside the ledger. Raises JobError
    where neither names a commit.
    """
    found = stop_request.of_job(context)
    note = found.note if found is not None else _recorded(context)
    commit = str(note.get("commit", ""))
    if not commit:
        raise JobError(
            "no operation or record of the job says which commit is deployed",
            _NAME_IT,
            code=ErrorCode.COMMIT_UNKNOWN,
        )
    if commit.endswith("+"):
        raise JobError(
            f"the job was submitted from {commit[:-1]} with changes that git does not have",
            _NAME_IT,
            code=ErrorCode.COMMIT_UNKNOWN,
        )
    return commit


def _recorded(context: JobContext) -> Mapping[str, Any]:
    """Return the record of the last version that was started and was not rolled back."""
    with suppress(YtError):  # the user may have no right to read the folder
        for one in VersionHistory(context.client, context.settings).all():
            if one.state in (StartState.STARTED, StartState.WORKS):
                return one.note
    return {}


def resolved(root: Path, revision: str) -> str:
    """Return the id of a commit. Raises JobError for one that the repository does not have."""
    words = ("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    try:
        return _git(root, *words).decode().strip()
    except (OSError, subprocess.CalledProcessError) as error:
        raise JobError(
            f"the repository {root} has no commit {revision!r}",
            "`git fetch` it (CI clones often have only the last commit), or name another one: "
            "--commit REVISION",
            code=ErrorCode.COMMIT_UNKNOWN,
        ) from error


def extract(root: Path, commit: str, folder: Path) -> None:
    """Write the files that the repository had at a commit; its work tree is not changed."""
    with tarfile.open(fileobj=io.BytesIO(_git(root, "archive", "--format=tar", commit))) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        packed.extractall(folder)


def _git(root: Path, *words: str) -> bytes:
    line = ["git", "-C", str(root), *words]
    here = environment.kept(os.environ, environment.GIT)
    return subprocess.run(line, capture_output=True, check=True, env=here).stdout
