"""What a submit starts, as values: sizes, files, version and commit. Asks no cluster."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from yt import yson

from ytstream import node
from ytstream.cluster import operation
from ytstream.declaration.archive import archive
from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import JobContext
from ytstream.provisioning.cluster_spark import spark_version
from ytstream.settings import environment, toml_file
from ytstream.settings.job_settings import ROCKSDB, Settings
from ytstream.settings.plain_path import plain_file
from ytstream.settings.resources import Resources, executor_overhead, sizes_of
from ytstream.settings.state_store import state_store_of
from ytstream.settings.submit_section import SubmitSection
from ytstream.text_table import table
from ytstream.version import __version__, version_of

from ..repository import root_of

ATTEMPT = Path(str(node.__file__)).with_name("attempt.sh")
"""What the driver's job runs before Java and Python."""
ATTEMPT_MODULE = "ytstream/node"
"""Where, in the package's archive, the module is that it calls. Among the job's files, Spark would
copy it into a folder of its own and put that on the driver's sys.path (PythonRunner)."""
ENVIRONMENT = "environment"
"""The folder beside the job's files that the archive of packages is unpacked into."""


@dataclass(frozen=True)
class LaunchPlan:
    """What is started, and from which files."""

    context: JobContext
    sizes: Resources
    folder: Path
    """The repository's folder for what is built."""
    main: Path
    config: Path
    """The configuration as it is shipped."""
    package: Path
    words: Sequence[str]
    """Words for spark-submit, as a person has typed them."""
    version: str
    """The version of pyproject.toml, and git's commit; empty where there is none."""
    commit: str
    repository: str = ""
    """The repository's address; empty where git knows none."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """What tells this start from others: see ytstream_tools/submitting/fingerprint.py."""

    @property
    def settings(self) -> Settings:
        """The settings."""
        return self.context.settings

    @property
    def submit(self) -> SubmitSection:
        """The settings under [submit]."""
        return self.settings.submit

    @property
    def without_a_way_back(self) -> str:
        """The remedy where the running version could not be restored."""
        make = self.context.make
        return f"{make('stop')}, then {make('submit')}, without a way back"

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that go into the job's folder beside main.py and the package."""
        return (self.config, ATTEMPT)

    @property
    def archive(self) -> str | None:
        """The archive of packages as spark-submit wants it."""
        given = self.submit.archive
        if given is None:
            return None
        here = given if given.startswith("yt:/") else str(plain_file(self.folder.parent / given))
        return f"{here}#{ENVIRONMENT}"

    @property
    def executor_overhead(self) -> str | None:
        """The memory outside an executor's heap; None: as Spark has it."""
        if state_store_of(self.settings, self.context.job.kind.is_stateful) == ROCKSDB:
            return executor_overhead(self.settings, self.sizes)
        return None

    @property
    def shipped(self) -> Iterator[Path]:
        """All files of this machine that are uploaded."""
        yield from (self.main, self.package, *self.files)
        if self.archive is not None and not self.archive.startswith("yt:/"):
            yield Path(self.archive.removesuffix(f"#{ENVIRONMENT}"))


def plan_of(context: JobContext, config: Path, words: Sequence[str]) -> LaunchPlan:
    """Return what would be started. Raises JobError outside of the job's repository."""
    package = context.job.package
    root = root_of(package)
    return LaunchPlan(
        context=context,
        sizes=sizes_of(context.settings, words),
        folder=root / "dist",
        main=root / "main.py",
        config=root / "dist" / config.name,
        package=root / "dist" / f"{package}.zip",
        words=words,
        version=_version(root),
        commit=_commit(root),
        repository=_repository(root),
    )


def build(plan: LaunchPlan, config: Path) -> None:
    """Write the package's archive, and the configuration with what it extends."""
    archive(plan.context.job.package, plan.folder)
    values = toml_file.read(config).values
    # What is used here is what the job gets: no variable of this shell's reaches it.
    values |= {"proxy": plan.settings.proxy, "allow_env_proxy": False}
    said = f"# What {config.name} and the files that it extends said when the job was submitted.\n"
    plan.config.write_text(said + toml_file.dump(values), encoding="utf-8")


def parameters(plan: LaunchPlan) -> dict[str, str]:
    """Return what is added to the specs of both operations and of their jobs, as YSON.

    SPYT would turn annotations that are settings of Spark into numbers and lists.
    """
    submit, settings = plan.submit, plan.settings
    note = {
        "version": plan.version,
        "commit": plan.commit,
        "runtime": __version__,
        "job": plan.context.job.name,
        "ledger": settings.ledger,
        **({"repository": plan.repository} if plan.repository else {}),
        **plan.identity,
    }
    links = {
        "Repository": plan.repository,
        "Commit": plan.commit,
        "Runbook": settings.runbook_url,
        "Ledger": settings.ledger,
    }
    # The web interface shows it; SPYT's driver adds its own lines, which the cluster merges.
    description = {name: value for name, value in links.items() if value}
    given = {"description": description, **submit.annotations, operation.NOTE: note}
    both: dict[str, object] = {"annotations": given}
    if submit.acl:
        both["acl"] = [{"action": "allow", **entry} for entry in submit.acl]
    drivers = dict(both)
    if submit.title is not None:
        drivers["title"] = submit.title
        both["title"] = f"{submit.title}: executors"
    if submit.stderr_table is not None:
        drivers["stderr_table_path"] = submit.stderr_table
    found = {
        "spark.ytsaurus.driver.operation.parameters": _yson(drivers),
        "spark.ytsaurus.executor.operation.parameters": _yson(both),
    }
    if submit.image is not None:
        image = _yson({"docker_image": submit.image})
        found |= {
            f"spark.ytsaurus.{task}.task.parameters": image for task in ("driver", "executor")
        }
    return found


def shown(plan: LaunchPlan) -> str:
    """Return the tables of what is started: processes, settings, files."""
    sizes, settings, submit = plan.sizes, plan.settings, plan.submit
    processes = [
        (of, count, int(sizes[f"{of}_cores"]), sizes[f"{of}_memory"], limit, where)
        for of, count, overhead in (
            ("driver", 1, None),
            ("executor", sizes.executors, plan.executor_overhead),
        )
        for limit in [sizes.limit(of, overhead)]
        for where in [sizes.given[f"{of}_memory"].where]
    ]
    about = {
        "cluster": settings.proxy,
        "pool": settings.pool or "the user's own",
        "alias": settings.alias,
        "version": f"{plan.version or 'none'}, commit {plan.commit or 'none'}",
        "runs on": f"Spark {spark_version(settings)}, SPYT {settings.spyt_version}, ytstream "
        f"{__version__}",
        "Python": submit.python,
        "image": submit.image,
        "archive": submit.archive,
        "stderr table": submit.stderr_table,
    }
    header = ("process", "count", "cores", "memory", "limit", "memory is given by")
    files = [(path.name, _size(path), _near(path, plan.folder.parent)) for path in plan.shipped]
    return "\n\n".join(
        (
            table(header, processes),
            "\n".join(f"{name + ':':<14}{value}" for name, value in about.items() if value),
            table(("file", "bytes", "from"), files),
        )
    )


def release_folder() -> str:
    """Return the name of the folder of SPYT's release on the cluster, by the SPYT that is here."""
    word = version_of("spyt").lower()
    if "snapshot" in word or "dev" in word:
        return "snapshots"
    return "pre-releases" if any(kind in word for kind in ("alpha", "beta", "rc")) else "releases"


def folder_of(package: str) -> Path:
    """Return where a package is installed. Raises JobError where it is not."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise JobError(
            f"{package} is not installed here", "run `make setup`", code=ErrorCode.NOT_INSTALLED
        )
    return Path(spec.origin).parent


def _yson(value: Mapping[str, object]) -> str:
    return str(yson.dumps(value, yson_format="text").decode())


def _size(path: Path) -> str:
    return f"{path.stat().st_size:,}" if path.exists() else "not built yet"


def _near(path: Path, root: Path) -> str:
    """Return the folder of a file as a person in the repository names it."""
    if path == ATTEMPT:
        return "ytstream"
    folder = path.parent
    return str(folder.relative_to(root)) if folder.is_relative_to(root) else str(folder)


def _version(root: Path) -> str:
    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    except (OSError, ValueError, KeyError):
        return ""
    return str(project.get("version", ""))


def _commit(root: Path) -> str:
    """Return git's commit of the repository, with "+" where files differ from it."""
    commit = _git(root, "rev-parse", "--short=12", "HEAD")
    return f"{commit}+" if commit and _git(root, "status", "--porcelain") else commit


def _repository(root: Path) -> str:
    """Return the address of git's remote, without a user and a password."""
    return without_secret(_git(root, "remote", "get-url", "origin"))


def without_secret(address: str) -> str:
    """Return an address without what stands before the host: a token, mostly."""
    return re.sub(r"^(\w+://)[^/@]*@", r"\1", address)


def _git(root: Path, *words: str) -> str:
    """Return what git says; empty where it says nothing, or is not there."""
    quiet = {**environment.kept(os.environ, environment.GIT), "GIT_OPTIONAL_LOCKS": "0"}
    line = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False, env=quiet)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
