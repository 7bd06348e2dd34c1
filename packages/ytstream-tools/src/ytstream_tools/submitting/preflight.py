"""Looks before a submit: everything that would keep the job from running, all of it at once.

Each look yields what is wrong and what to do about it. It changes nothing on the cluster.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ytstream.cluster import operation
from ytstream.cluster.client import Client, explained, facts
from ytstream.connector.java_home import require_java
from ytstream.declaration.archive import verify_data_files, verify_imports
from ytstream.errors import JobError, OutageError, RestartableError
from ytstream.errors.error_codes import ErrorCode
from ytstream.instance.lock import InstanceLock
from ytstream.ledger.positions import owner_of, read_head
from ytstream.provisioning import cluster_spark, job_objects
from ytstream.settings.addresses import is_loopback
from ytstream.settings.spark_conf import SPYT_CONF, SPYT_RELEASES

from .launch_plan import ENVIRONMENT, LaunchPlan, release_folder

Problem = tuple[str, str]
"""What is wrong, and what to do."""
PreflightCheck = Callable[[LaunchPlan], Iterator[Problem]]

_ADMINISTRATORS = "ask the cluster's administrators (docs/cluster.md of the template says for what)"
_LEAST_PYTHON = (3, 11)


def look(plan: LaunchPlan, looks: Sequence[PreflightCheck]) -> None:
    """Raise JobError with all problems and the remedy of each; return when there is none."""
    found: list[Problem] = []
    for one in looks:
        try:
            with explained(plan.settings):
                found += one(plan)
        except JobError as error:
            found.append((error.message, error.remedy))
        except OutageError:
            raise
        except RestartableError as error:
            found.append((str(error), "try again, or ask the cluster's administrators"))
    if found:
        lines = "\n".join(str(JobError(*problem, code=ErrorCode.PREFLIGHT)) for problem in found)
        raise JobError(
            f"nothing was started, since {len(found)} thing{'s' * (len(found) > 1)} must be "
            f"corrected first:\n{lines}",
            code=ErrorCode.PREFLIGHT,
        )


def verify_operations(client: Client, proxy: str) -> None:
    """Raise JobError for a minicluster that runs no operations.

    Its address does not tell: one on this machine that was started so runs them. Asked for one that
    has no tasks, it says which of the two is missing.
    """
    if is_loopback(proxy) and "--operations" in operation.refusal_of_an_empty_one(client):
        raise JobError(
            f"{proxy} is this machine: its minicluster runs no operations",
            "use `make demo` here, submit with CONFIG=config/production.toml, or start it by "
            "`python -m minicluster --operations`",
            code=ErrorCode.NO_OPERATIONS,
        )


def _here(plan: LaunchPlan) -> Iterator[Problem]:
    """Check this machine: Java, the package's imports and files, the archive."""
    package = plan.context.job.package
    for verify in (require_java, lambda: _imports(plan), lambda: verify_data_files(package)):
        try:
            verify()
        except JobError as error:
            yield error.message, error.remedy
    for path in plan.shipped:
        is_built = path in (plan.package, plan.config)
        if not is_built and not path.is_file():
            yield f"{path} is not there", "correct the path (archive, under [submit]), or make it"


def _imports(plan: LaunchPlan) -> None:
    if not plan.submit.brings_packages:
        job = plan.context.job
        verify_imports(job.package, job.kind.packages)


def _python(plan: LaunchPlan) -> Iterator[Problem]:
    """Check the name of the nodes' Python; its packages show when the driver starts."""
    python = plan.submit.python
    named = re.search(r"python(\d)\.(\d+)$", python)
    if named and (int(named[1]), int(named[2])) < _LEAST_PYTHON:
        least = ".".join(map(str, _LEAST_PYTHON))
        yield f"[submit] python = {python!r} is too old", f"the job needs Python {least} or later"
    if python.startswith(f"./{ENVIRONMENT}/") and plan.submit.archive is None:
        yield f"[submit] python = {python!r}, and there is no archive", "give it as archive too"


def _spyt(plan: LaunchPlan) -> Iterator[Problem]:
    """Look for SPYT's global configuration, its release, and the job's Spark."""
    client, confs = plan.context.client, plan.settings.spark_confs
    path = confs.get("spark.ytsaurus.config.global.path", SPYT_CONF)
    if not client.exists(path) or "environment" not in client.get(path):
        yield f"{path} is missing, or has no `environment`", f"SPYT reads it: {_ADMINISTRATORS}"
    folder = f"{SPYT_RELEASES}/{release_folder()}"
    releases = confs.get("spark.ytsaurus.config.releases.path", folder)
    version = plan.settings.spyt_version
    name = confs.get("spark.ytsaurus.config.launch.file", "spark-launch-conf")
    release = f"{releases}/{version}/{name}"
    if not client.exists(release):
        there = sorted(map(str, client.list(releases))) if client.exists(releases) else []
        remedy = f"set spyt_version to one of: {', '.join(there)}" if there else _ADMINISTRATORS
        yield f"SPYT {version} is not on the cluster: no {release}", remedy
    else:
        for file in client.get(release).get("file_paths", []):
            if not client.exists(str(file)):
                yield f"SPYT {version} is not complete: no {file}", _ADMINISTRATORS
    yield from cluster_spark.problems(client, plan.settings)


def _pool(plan: LaunchPlan) -> Iterator[Problem]:
    """Look for the pool in the default tree: one that is not there would get a small share."""
    client, pool = plan.context.client, plan.settings.pool
    if pool is None:
        return
    tree = client.get_attribute("//sys/pool_trees", "default_tree", None)
    if tree is None or facts(client, f"//sys/pool_trees/{tree}", ("type",)) is None:
        return  # nothing is known of pools here
    pools = client.get(f"//sys/pool_trees/{tree}")
    paths = dict(_pools(pools, f"//sys/pool_trees/{tree}"))
    if pool not in paths:
        near = difflib.get_close_matches(pool, paths, n=3)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        yield f"there is no pool {pool!r}", f"{hint}{_ADMINISTRATORS}"
        return
    user = str(client.get_user_name())
    if client.check_permission(user, "use", paths[pool])["action"] != "allow":
        yield f"{user} has no right to use the pool {pool!r}", "ask its owner for the right"
    limits = client.get_attribute(paths[pool], "resource_limits", None) or {}
    needed = _cores(plan)
    if "cpu" in limits and float(limits["cpu"]) < needed:
        yield (
            f"the pool {pool!r} has {float(limits['cpu']):g} cores, and the job takes {needed}",
            "name another pool, or give fewer cores under [submit]",
        )


def _cores(plan: LaunchPlan) -> int:
    sizes = plan.sizes
    return int(sizes["driver_cores"]) + sizes.executors * int(sizes["executor_cores"])


def _pools(tree: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name, below in tree.items():
        yield name, f"{path}/{name}"
        if isinstance(below, Mapping):
            yield from _pools(below, f"{path}/{name}")


def _quota(plan: LaunchPlan) -> Iterator[Problem]:
    """Look whether the account of the job's folder has room."""
    client = plan.context.client
    found = facts(client, plan.settings.ledger.rpartition("/")[0], ("account",))
    account = plan.settings.account or (found or {}).get("account")
    names = ("resource_limits", "resource_usage")
    of = facts(client, f"//sys/accounts/{account}", names) if account else None
    if of is None or not {*names} <= {*of}:
        return
    for name, limit, used in _counted(of["resource_limits"], of["resource_usage"]):
        if used >= limit:
            yield (
                f"the quota of the account {account!r} is full: {used} of {limit} {name}",
                "remove something of the account's, or ask for more",
            )


def _counted(limits: Mapping[str, Any], usage: Mapping[str, Any]) -> Iterator[tuple[str, int, int]]:
    for name in ("node_count", "chunk_count", "tablet_count"):
        if name in limits and name in usage:
            yield name, int(limits[name]), int(usage[name])
    disks = limits.get("disk_space_per_medium", {})
    for medium, limit in disks.items():
        used = usage.get("disk_space_per_medium", {}).get(medium, 0)
        yield f"bytes on {medium}", int(limit), int(used)


def _tables(plan: LaunchPlan) -> Iterator[Problem]:
    """Check the job's tables, as `check` does."""
    for finding in job_objects.findings(plan.context):
        yield str(finding), ""
    table = plan.submit.stderr_table
    if table is not None and not plan.context.client.exists(table):
        yield f"stderr_table {table}: missing", f"yt create table {table}"


def running(plan: LaunchPlan) -> Iterator[Problem]:
    """Look for an operation under the alias, and for a process that holds the job's lock."""
    client, settings = plan.context.client, plan.settings
    stop = f"{plan.context.make('stop')} first"
    found = operation.get(client, alias=settings.alias)
    if found is not None and not found.is_final:
        if found.note.get("ledger") == settings.ledger:
            version = f"version {found.note.get('version') or '?'}, "
            yield (
                f"the job is already running: operation {found.id}, {version}commit "
                f"{found.note.get('commit') or '?'}, started by {found.user}",
                f"{stop}; it waits for the end",
            )
        else:
            yield (
                f"the alias {settings.alias} belongs to operation {found.id} of {found.user}, "
                "which is another job's",
                "name another as alias under [submit]",
            )
        return
    head = (
        read_head(settings.ledger, client.select_rows) if client.exists(settings.ledger) else None
    )
    other = operation.of_owner(client, owner_of(head))
    if other is not None and not other.is_final:
        yield f"the job is already running: operation {other.id}", stop
        return
    if not client.exists(settings.consumer):
        return
    for _, owner, _ in InstanceLock(client, settings.consumer).holders():
        # A driver whose executors' operation was completed leaves its lock to expire (SPYT exits
        # at once): the new driver waits for that, half a minute at most.
        id_ = operation.id_in(owner)
        former = operation.get(client, id_) if id_ is not None else None
        if former is None or not former.is_final:
            yield f"the job is already running: {owner}", f"{stop}, or wait for its lock to expire"


LOOKS: tuple[PreflightCheck, ...] = (_here, running, _python, _spyt, _pool, _quota, _tables)
"""The first of all looks; ytstream_tools/submitting/launch_checks.py has the others."""
