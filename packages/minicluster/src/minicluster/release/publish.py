"""Put what SPYT's direct submit needs into Cypress, from the packages that are installed here."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import generic
from ..cypress.commands import Cypress
from . import archives, documents
from .node import java_home

SETUP = Path(__file__).with_name("setup-spyt-env.sh")
PROGRAMS = ("bash", "tar")
"""Programs that jobs call: SPYT's commands are lines for bash."""


def missing() -> list[str]:
    """Return what jobs need and this machine does not have."""
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    programs += [] if java_home() else ["java"]
    packages = {"spyt": "ytsaurus-spyt", "pyspark": "pyspark"}
    return programs + [named for name, named in packages.items() if _folder(name) is None]


def publish(cypress: Cypress, sparks: Sequence[Path] = ()) -> list[str]:
    """Publish the installed SPYT and the Sparks in ``sparks``; return the paths of the files.

    Without ``sparks`` it is the installed pyspark. What was published before is replaced.
    Raises YtError for a folder that is not a Spark.
    """
    spyt = _required("spyt")
    homes = sparks or [_required("pyspark")]
    distributions = {
        f"{documents.spark_path(archives.spark_version(home))}/{archives.spark_name(home)}.tgz": (
            archives.spark_archive(home)
        )
        for home in homes
    }
    version = json.loads((spyt / "conf/version.json").read_text())["scala"]
    folder = documents.spyt_path(version)
    files = {
        f"{folder}/spyt-package.zip": archives.spyt_archive(spyt),
        f"{folder}/setup-spyt-env.sh": SETUP.read_bytes(),
        **distributions,
    }
    for path, data in files.items():
        cypress.create("file", path, recursive=True, force=True)
        cypress.write_file(path, data, compute_md5=True)
    cypress.set(f"{folder}/setup-spyt-env.sh/@executable", True)
    for path, document in {
        documents.GLOBAL_CONF: documents.global_conf(),
        documents.launch_conf_path(version): documents.launch_conf(version),
    }.items():
        cypress.create("document", path, recursive=True, force=True)
        cypress.set(path, document)
    return list(files)


def _required(package: str) -> Path:
    found = _folder(package)
    if found is None:
        raise generic(f"operations need {package}: pip install 'minicluster[operations]'")
    return found


def _folder(package: str) -> Path | None:
    spec = importlib.util.find_spec(package)  # does not import it: pyspark takes a second
    return Path(spec.origin).parent if spec and spec.origin else None
