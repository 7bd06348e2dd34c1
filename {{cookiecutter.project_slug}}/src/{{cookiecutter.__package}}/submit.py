"""Direct submit: the job as a YTsaurus operation, through SPYT's spark-submit."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from .errors import JobError
from .session import APP_NAME, confs
from .settings import Settings, is_loopback, token

PACKAGE = Path(__file__).parent


def archive(folder: Path) -> Path:
    """Write the package as ``<folder>/<package>.zip`` for --py-files and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{PACKAGE.name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for source in sorted(PACKAGE.rglob("*.py")):
            out.write(source, source.relative_to(PACKAGE.parent))
    return target


def command(settings: Settings, config: Path, py_files: Path, extra: Sequence[str]) -> list[str]:
    """The spark-submit call, without the token, which travels in the environment."""
    proxy = re.sub(r"^https?://", "", settings.proxy)
    words = ["spark-submit", "--master", f"ytsaurus://{proxy}", "--deploy-mode", "cluster"]
    words += ["--name", APP_NAME]
    if settings.pool:
        words += ["--queue", settings.pool]
    words += ["--conf", f"spark.ytsaurus.spyt.version={settings.spyt_version}"]
    # The driver's stdout is thrown away on the cluster, its stderr is kept.
    words += ["--conf", "spark.ytsaurus.redirect.stdout.to.stderr=true"]
    for conf in confs(settings):
        words += ["--conf", f"{conf.key}={conf.value}"]
    words += ["--py-files", str(py_files), "--files", str(config), *extra]
    return [*words, "main.py", "--config", config.name]


def submit(settings: Settings, config: Path, extra: Sequence[str]) -> None:
    """Build the archive and hand the job to the cluster; returns when spark-submit does.

    Raises JobError for a cluster on the loopback, a missing token, or a submit that failed.
    """
    if is_loopback(settings.proxy):
        raise JobError(
            f"{settings.proxy} is this machine: a minicluster runs no operations",
            "use `make demo` here; submit with CONFIG=config/production.toml",
        )
    spyt, pyspark = find_spec("spyt"), find_spec("pyspark")
    assert spyt is not None
    assert pyspark is not None
    spyt_root, spark_root = Path(str(spyt.origin)).parent, Path(str(pyspark.origin)).parent
    environment = {
        **os.environ,
        "YT_TOKEN": token(settings),
        "SPARK_CONF_DIR": str(spyt_root / "conf"),
        "SPARK_HOME": str(spark_root),
        "PYSPARK_PYTHON": sys.executable,
    }
    words = command(settings, config, archive(Path("dist")), extra)
    words[0] = str(spark_root / "bin" / "spark-submit")
    if subprocess.run(words, env=environment, check=False).returncode:
        raise JobError("spark-submit failed", "its own message stands above")
