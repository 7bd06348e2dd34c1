"""What runs spark-submit: the job as a YTsaurus operation (SPYT's direct submit).

``submit.py --config FILE [-- WORD ...]``; words after ``--`` go to spark-submit as they are.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "{{ cookiecutter.__package }}"
ROOT = Path(__file__).parent


def job(module: str) -> Any:
    """A module of the job."""
    return import_module(f"{PACKAGE}.{module}")


def archive(folder: Path) -> Path:
    """Write the package as ``<folder>/<package>.zip`` for --py-files and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{PACKAGE}.zip"
    sources = ROOT / "src"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
        for source in sorted((sources / PACKAGE).rglob("*.py")):
            out.write(source, source.relative_to(sources))
    return target


def command(settings: Any, config: Path, py_files: Path, extra: Sequence[str]) -> list[str]:
    """The spark-submit call, without the token, which travels in the environment."""
    proxy = re.sub(r"^https?://", "", settings.proxy)
    words = ["spark-submit", "--master", f"ytsaurus://{proxy}", "--deploy-mode", "cluster"]
    words += ["--name", job("session").APP_NAME]
    if settings.pool:
        words += ["--queue", settings.pool]
    # What is on the cluster need not be what is installed here.
    words += ["--conf", f"spark.ytsaurus.spyt.version={settings.spyt_version}"]
    # The driver's stdout is thrown away on the cluster, its stderr is kept.
    words += ["--conf", "spark.ytsaurus.redirect.stdout.to.stderr=true"]
    for key, value in job("session").confs(settings).items():
        words += ["--conf", f"{key}={value}"]
    words += ["--py-files", str(py_files), "--files", str(config), *extra]
    return [*words, str(ROOT / "main.py"), "--config", config.name]


def submit(settings: Any, config: Path, extra: Sequence[str]) -> None:
    """Build the archive and hand the job to the cluster; returns when spark-submit does.

    Raises JobError for a cluster on the loopback, a missing token, or a submit that failed.
    """
    if job("settings").is_loopback(settings.proxy):
        raise job("errors").JobError(
            f"{settings.proxy} is this machine: a minicluster runs no operations",
            "use `make demo` here; submit with CONFIG=config/production.toml",
        )
    spyt, pyspark = find_spec("spyt"), find_spec("pyspark")
    assert spyt is not None
    assert pyspark is not None
    spyt_root, spark_root = Path(str(spyt.origin)).parent, Path(str(pyspark.origin)).parent
    environment = {
        **os.environ,
        "YT_TOKEN": job("settings").token(settings),
        "SPARK_CONF_DIR": str(spyt_root / "conf"),
        "SPARK_HOME": str(spark_root),
        "PYSPARK_PYTHON": sys.executable,
    }
    words = command(settings, config, archive(ROOT / "dist"), extra)
    words[0] = str(spark_root / "bin" / "spark-submit")
    if subprocess.run(words, env=environment, check=False).returncode:
        raise job("errors").JobError("spark-submit failed", "its own message stands above")


def main() -> int:
    """0 when spark-submit succeeded; 1 with the reason when the job may not or did not start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=ROOT / "config" / "production.toml")
    parser.add_argument("words", nargs="*", metavar="-- WORD")
    arguments = parser.parse_args()
    cluster, provision = job("cluster"), job("provision")
    try:
        settings = job("settings").load(arguments.config)
        print(f"cluster: {settings.proxy}", file=sys.stderr, flush=True)
        with cluster.explained(settings):
            client = cluster.connect(settings)
            provision.require(client, settings)
            settings = provision.sized(client, settings)
        submit(settings, arguments.config, arguments.words)
    except (job("errors").JobError, job("errors").RestartableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
