"""`check --permissions`: the least rights that a job and the people around it need.

What needs which permission is from YTsaurus' documentation ("Access control", "Queues"): to write
rows, attributes and new nodes of a folder, and to lock it, is `write`; to take a node away is
`remove`, to mount a table `mount`, to pay from an account or to put a table on a bundle `use`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from yt.common import YtError

from ..cluster.client import Client
from ..errors import JobError
from ..errors.error_codes import ErrorCode
from ..job import Job, JobContext
from ..schema.changes import deleted_path
from ..settings.job_settings import Settings
from ..settings.spark_conf import SPARK_DISTRIBUTIONS, SPYT_CONF
from ..text_table import counted, table

JOB, OPERATOR, REHEARSAL, ON_CALL = "job", "operator", "rehearsal", "on-call"
ROLES = (JOB, OPERATOR, REHEARSAL, ON_CALL)
_ALLOW = "allow"


@dataclass(frozen=True)
class Permission:
    """One permission on one path, and what it is for. ``object`` is what the path is to the job."""

    permission: str
    object: str
    path: str
    why: str


def rights(role: str, job: Job, settings: Settings) -> list[Permission]:
    """Return the rights that ``role`` needs. Skip paths of tables that a job does not have."""
    found = {
        REHEARSAL: lambda: [*_reading(settings)],
        ON_CALL: lambda: [*_reading(settings), *_looking(settings)],
        JOB: lambda: [*_reading(settings), *_running(job, settings)],
        OPERATOR: lambda: [
            *_reading(settings), *_running(job, settings), *_preparing(job, settings)
        ],
    }[role]()  # fmt: skip
    return _once(found)


def of_stop(settings: Settings) -> list[Permission]:
    """Return what `stop` and `drain` need in addition to the rights of a person on call.

    A driver that does not stop is ended, for which its operation's `acl` has to allow `manage`.
    """
    return [Permission("write", "ledger", settings.ledger, "the wish to stop")]


def of_submit(job: Job, settings: Settings) -> list[Permission]:
    """Return the rights that a submit checks: those of the job, which runs as the same user."""
    found = rights(JOB, job, settings)
    near = settings.ledger.rpartition("/")[0]
    found.append(
        Permission("write", "the ledger's folder", near, "shipped files, records of versions")
    )
    if settings.submit.stderr_table is not None:
        found.append(
            Permission("write", "stderr_table", settings.submit.stderr_table, "its stderr")
        )
    for path in (SPYT_CONF, SPARK_DISTRIBUTIONS):
        found.append(Permission("read", "SPYT", path, "spark-submit and the driver read it"))
    return _once(found)


def _once(found: Sequence[Permission]) -> list[Permission]:
    return list({(one.permission, one.path): one for one in reversed(found)}.values())[::-1]


def missing(client: Client, wanted: Iterable[Permission], user: str) -> Iterator[str]:
    """Yield each right that the user lacks, on what, and what it is for."""
    for right in wanted:
        path, is_allowed = _asked(client, right, user)
        if not is_allowed:
            yield _line(right, path).strip()


def _reading(settings: Settings) -> Iterator[Permission]:
    """Yield the rights of whoever reads rows again: none of them changes anything."""
    for queue in settings.queues:
        yield Permission("read", "queue", queue, "rows, partitions and schema")
    yield Permission("read", "ledger", settings.ledger, "where the job is, and what batches did")
    if settings.reference is not None:
        yield Permission("read", "reference", settings.reference, "the rows that a join looks up")
    for name, path in settings.references.items():
        yield Permission("read", f"reference {name}", path, "the rows that lookup() adds")


def _looking(settings: Settings) -> Iterator[Permission]:
    """Yield what `status`, `metrics` and `why` read in addition to queues and ledger."""
    yield Permission("read", "consumer", settings.consumer, "its offsets")
    folder = settings.consumer.rpartition("/")[0]
    yield Permission("read", "the consumer's folder", folder, "who holds the job's lock")


def _running(job: Job, settings: Settings) -> Iterator[Permission]:
    yield Permission("write", "ledger", settings.ledger, "the head, batches, and the wish to stop")
    yield Permission(
        "read", "consumer", settings.consumer, "its offsets; to read queues through it"
    )
    yield Permission("write", "consumer", settings.consumer, "to move it; whose it is")
    folder = settings.consumer.rpartition("/")[0]
    yield Permission("write", "the consumer's folder", folder, "the lock of the running job")
    folders = {"checkpoint": settings.checkpoint}
    folders |= {name: settings.outputs[name] for name in job.static}
    folders |= {"staging": settings.staging} if job.static else {}
    for name, path in folders.items():
        yield Permission("read", name, path, "what is in the folder")
        yield Permission("write", name, path, "to make and to move what is in it")
        yield Permission("remove", name, path, "to take away what is too old")
    for name in job.outputs:
        if name not in job.static:
            yield Permission("read", name, settings.outputs[name], "the schema, and whose it is")
            yield Permission("write", name, settings.outputs[name], "rows, and whose it is")
    for name in job.deletions:
        path, own = deleted_path(settings.outputs[name]), deleted_path(name)
        yield Permission("read", own, path, "deletes that MERGE remembers")
        yield Permission("write", own, path, "deletes that MERGE remembers")
    if settings.account is not None:
        yield Permission(
            "use", "account", f"//sys/accounts/{settings.account}", "new files and tables"
        )


def _preparing(job: Job, settings: Settings) -> Iterator[Permission]:
    """Yield what `provision` also needs; `stop`, `rewind` and others do what a start does."""
    tables = {"consumer": settings.consumer, "ledger": settings.ledger}
    tables |= {name: settings.outputs[name] for name in job.outputs if name not in job.static}
    tables |= {deleted_path(name): deleted_path(settings.outputs[name]) for name in job.deletions}
    for name, path in tables.items():
        yield Permission("mount", name, path, "`provision` mounts it")
        yield Permission("write", f"the folder of {name}", path.rpartition("/")[0], "to create it")
    for queue in settings.queues:
        why = "`provision` registers the consumer, unless the queue's owner has"
        yield Permission("register_queue_consumer", "queue", queue, why)
    if settings.tablet_cell_bundle is not None:
        path = f"//sys/tablet_cell_bundles/{settings.tablet_cell_bundle}"
        yield Permission("use", "bundle", path, "new tables")


def check(context: JobContext, role: str, user: str | None) -> str:
    """Return a table of what the cluster answers for ``user``, by default that of the token.

    Raises JobError, with the missing rights and commands that grant them.
    """
    client = context.client
    name = user if user is not None else str(client.get_user_name())
    if not client.exists(f"//sys/users/{name}"):
        raise JobError(f"the cluster has no user {name!r}", "correct --user", code=ErrorCode.USAGE)
    wanted = rights(role, context.job, context.settings)
    asked = [(right, *_asked(client, right, name)) for right in wanted]
    denied = [(right, path) for right, path, is_allowed in asked if not is_allowed]
    if denied:
        raise JobError(
            f"{name} lacks {counted(len(denied), 'right')} of {len(asked)} that the {role} needs:\n"
            + "\n".join(_line(right, path) for right, path in denied),
            "let the owners run:\n" + "\n".join(_commands(name, denied)),
            code=ErrorCode.PERMISSION,
        )
    header = ("permission", "of", "path", "for")
    rows = [(right.permission, right.object, path, right.why) for right, path, _ in asked]
    return f"{table(header, rows)}\n\n{name} has the {len(rows)} rights that the {role} needs"


def _asked(client: Client, right: Permission, user: str) -> tuple[str, bool]:
    """Return which path was asked about, and whether the user has the right.

    What is not there yet will have the rights of the folder that it is made in.
    """
    path = right.path
    while True:
        try:
            answer = client.check_permission(user, right.permission, path)
        except YtError as error:
            if not error.is_resolve_error() or path.count("/") <= 2:
                raise
            path = path.rpartition("/")[0]
        else:
            return path, answer["action"] == _ALLOW


def _line(right: Permission, path: str) -> str:
    where = "" if path == right.path else f" (not there; asked of {path})"
    return f"  {right.permission} on {right.object} {right.path}{where}: {right.why}"


def _commands(user: str, denied: Sequence[tuple[Permission, str]]) -> Iterator[str]:
    by_path: dict[str, list[str]] = {}
    for right, path in denied:
        by_path.setdefault(path, []).append(right.permission)
    for path, permissions in by_path.items():
        listed = "; ".join(dict.fromkeys(permissions))
        entry = f'{{action=allow; subjects=["{user}"]; permissions=[{listed}]}}'
        yield f"  yt set {path}/@acl/end '{entry}'"
