"""What tells a start from others: checksums of what is shipped, in the operation's own note."""

import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import file_digest, sha256
from itertools import pairwise
from pathlib import Path
from uuid import uuid4
from zipfile import ZipFile

from ytstream.provisioning.cluster_spark import spark_version

from .launch_plan import LaunchPlan
from .spark_submit import given

_SECRET = re.compile(r"secret|password|token", re.IGNORECASE)
"""spark.redaction.regex of SPYT's spark-defaults.conf."""


def identified(plan: LaunchPlan, epoch: int) -> LaunchPlan:
    """Return the plan of files that are built, with what the operation's note says of them.

    ``files`` and ``configuration`` are the same for the same version: the name of a commit does not
    tell which changes beside it were shipped. ``submit`` is another word each time, ``epoch`` the
    one before the start. ``secrets`` are the names of settings that travel in the vault.
    """
    settings, hidden = plan.settings, sorted(secrets(plan))
    shipped = [*plan.shipped]
    files = {path.name: _digest(path) for path in shipped if path != plan.config}
    words = [word.partition("=")[0] if _names(hidden, word) else word for word in plan.words]
    said = (plan.config.read_text(encoding="utf-8"), *words, spark_version(settings))
    identity = {
        "files": _short(repr(sorted(files.items()))),
        "configuration": _short("\n".join(said)),
        "consumer": settings.consumer,
        "checkpoint": settings.checkpoint,
        "secrets": hidden,
        "epoch": epoch,
        "submit": uuid4().hex,
    }
    return replace(plan, identity=identity)


def _names(secrets: Sequence[str], word: str) -> bool:
    return any(word.startswith(f"{name}=") for name in secrets)


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:12]


def _digest(path: Path) -> str:
    """Return a checksum of a file's content; in our own archive a file has the time of its copy."""
    if path.suffix != ".zip":
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    with ZipFile(path) as package:
        found = sorted(
            (name, sha256(package.read(name)).hexdigest()) for name in package.namelist()
        )
    return _short(repr(found))


def secrets(plan: LaunchPlan) -> dict[str, str]:
    """Return the settings that SPYT puts into the operation's vault, by their names."""
    words = [*plan.words]
    typed = [then for word, then in pairwise(words) if word == "--conf"]
    found = {**given(plan, Path()), **dict(word.split("=", 1) for word in typed if "=" in word)}
    return {key: value for key, value in found.items() if _SECRET.search(key)}
