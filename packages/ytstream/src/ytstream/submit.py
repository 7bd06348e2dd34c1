"""Starts the job as a YTsaurus operation through spark-submit (SPYT's direct submit)."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from . import confs
from .addresses import is_loopback
from .config import Settings, token
from .errors import JobError
from .job import Connection
from .query.session import settings_of
from .repository import root_of
from .shipped import archive, verify_imports


def submit(connection: Connection, config: Path, words: Sequence[str]) -> None:
    """Build the archive and hand the job to the cluster; returns when spark-submit does.

    Raises JobError for a missing token, an import the cluster lacks, or a submit that failed.
    """
    pyspark, spyt = _folder("pyspark"), _folder("spyt")
    environment = {
        **os.environ,
        "YT_TOKEN": token(connection.settings),
        "SPARK_CONF_DIR": str(spyt / "conf"),
        "SPARK_HOME": str(pyspark),
        "PYSPARK_PYTHON": sys.executable,
    }
    verify_imports(connection.job.package, connection.job.kind.packages)
    root = root_of(connection.job.package)
    archived = archive(connection.job.package, root / "dist")
    line = command(connection, root / "main.py", config, archived, words)
    line[0] = str(pyspark / "bin" / "spark-submit")
    if subprocess.run(line, env=environment, check=False).returncode:
        raise JobError("spark-submit failed", "its own message is above")


def verify_target(settings: Settings) -> None:
    """Raise JobError for a cluster on the loopback."""
    if is_loopback(settings.proxy):
        raise JobError(
            f"{settings.proxy} is this machine: a minicluster runs no operations",
            "use `make demo` here; submit with CONFIG=config/production.toml",
        )


def command(
    connection: Connection, main: Path, config: Path, py_files: Path, words: Sequence[str]
) -> list[str]:
    """Return the spark-submit call, without the token, which travels in the environment."""
    settings = connection.settings
    proxy = re.sub(r"^https?://", "", settings.proxy)
    line = ["spark-submit", "--master", f"ytsaurus://{proxy}", "--deploy-mode", "cluster"]
    line += ["--name", connection.job.name]
    line += ["--queue", settings.pool] if settings.pool else []
    given = confs.filled(iter(confs.SUBMIT), connection.values) | settings_of(connection)
    for key, value in given.items():
        line += ["--conf", f"{key}={value}"]
    line += ["--py-files", str(py_files), "--files", str(config), *words]
    return [*line, str(main), "--config", config.name]


def _folder(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise JobError(f"{package} is not installed here", "run `make setup`")
    return Path(spec.origin).parent
