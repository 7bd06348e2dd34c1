"""Starts a former version again, from its record: no Spark, no repository and no upload.

YTsaurus gives out the spec of an operation without its vault. The token and the secret settings are
those of the shell and of the configuration here.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from uuid import uuid4

from yt.common import YtError
from yt.wrapper.driver import make_formatted_request

from ytstream.cluster import operation
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.settings.job_settings import token

from .fingerprint import secrets
from .launch_plan import LaunchPlan
from .version_history import DeployedVersion, VersionHistory


def verify(versions: VersionHistory, former: DeployedVersion, made: LaunchPlan) -> None:
    """Raise JobError when the former version could not be started again; asks, changes nothing."""
    if problems := [*_problems(versions, former, made)]:
        raise JobError(
            f"the running version ({former.named}) could not be restored: {'; '.join(problems)}",
            made.without_a_way_back,
            code=ErrorCode.NO_ROLLBACK,
        )


def _problems(versions: VersionHistory, former: DeployedVersion, made: LaunchPlan) -> Iterator[str]:
    spec = versions.spec(former)
    if spec is None:
        yield f"its record in {versions.folder} has no spec"
        return
    for path in spec["tasks"][operation.DRIVER].get("file_paths", []):
        if not versions.client.exists(str(path)):
            yield f"its file {path} is gone"
    here = secrets(made)
    for name in former.note.get("secrets", []):
        if name not in here:
            yield f"its secret setting {name} is not in the configuration here"


def start(versions: VersionHistory, former: DeployedVersion, made: LaunchPlan, epoch: int) -> str:
    """Start the former version; return the id of its operation."""
    spec = versions.spec(former)
    if spec is None:
        raise JobError(
            f"the record of {former.named} is gone",
            "submit that commit",
            code=ErrorCode.NO_ROLLBACK,
        )
    here, key = secrets(made), uuid4().hex
    vault = {_variable(name): here[name] for name in former.note.get("secrets", []) if name in here}
    note = {**former.note, "submit": key, "epoch": epoch}
    given: Mapping[str, Any] = {
        **spec,
        "annotations": {**spec.get("annotations", {}), operation.NOTE: note},
        "secure_vault": {"YT_TOKEN": token(versions.settings), **vault},
    }
    request = {"operation_type": "vanilla", "spec": given}
    try:
        answer = make_formatted_request(
            "start_operation", request, format=None, client=versions.client
        )
        return str(answer["operation_id"])
    except YtError:  # the answer may have been lost
        found = operation.get(versions.client, alias=versions.settings.alias)
        if found is None or found.note.get("submit") != key:
            raise
        return found.id


def _variable(name: str) -> str:
    """Return the name of a setting in the vault (SPYT, SparkConfExtensions.confToEnvName)."""
    return name.replace(".", "_").upper()
