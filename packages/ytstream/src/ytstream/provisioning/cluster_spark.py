"""Whether the cluster has the job's Spark: its distribution, and a SPYT with an adapter for it."""

import re
from collections.abc import Iterator

from ..cluster.client import Client
from ..settings.job_rules import RULES
from ..settings.job_settings import Settings
from ..settings.spark_conf import SPARK_DISTRIBUTIONS
from ..version import version_of

_ADAPTERS = (("2.11", "4.3"), ("2.10", "4.2"), ("2.9", "4.0"))
"""SPYT, and the first Spark that it has no adapter for (ytsaurus-spyt's wheel: Requires-Dist)."""
_ADMINISTRATORS = "ask the cluster's administrators (docs/cluster.md of the template says for what)"


def spark_version(settings: Settings) -> str:
    """Return the version of the Spark distribution that the cluster has to have."""
    return settings.spark_confs.get("spark.ytsaurus.spark.version", version_of("pyspark"))


def is_told(client: Client, settings: Settings) -> bool:
    """Return whether this cluster has Spark distributions at all; a test cluster has none."""
    return bool(client.exists(_folder(settings)))


def problems(client: Client, settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield what keeps this job's Spark from running on the cluster, and the answer that fits."""
    wanted = spark_version(settings)
    for spyt, first_without in _ADAPTERS:
        if _numbers(settings.spyt_version) < _numbers(spyt):
            continue
        if _numbers(wanted) >= _numbers(first_without):
            yield (
                f"SPYT {settings.spyt_version} has no adapter for Spark {wanted}: it takes Spark "
                f"before {first_without}",
                _answer([name for name in _OFFERED if _numbers(name) < _numbers(first_without)]),
            )
        break
    there = [*_distributions(client, _folder(settings))]
    if wanted not in there:
        folder = "/".join([_folder(settings), *wanted.split(".")[:3]])
        yield f"Spark {wanted} is not on the cluster: no .tgz in {folder}", _remedy(wanted, there)


_OFFERED: tuple[str, ...] = tuple(RULES["spark_versions"])


def _remedy(wanted: str, there: list[str]) -> str:
    """Return the way to run on what is there: another patch, another answer, or nothing."""
    if same := [one for one in there if _line(one) == _line(wanted)]:
        newest = max(same, key=_numbers)
        return f'write "spark.ytsaurus.spark.version" = "{newest}" under [spark]: it is there'
    return _answer([name for name in _OFFERED if name in {*map(_line, there)}])


def _answer(lines: list[str]) -> str:
    if not lines:
        return _ADMINISTRATORS
    newest = max(lines, key=_numbers)
    return (
        f'call cruft update --variables-to-update \'{{"spark_version": "{newest}"}}\': the '
        f"cluster can run Spark {newest}"
    )


def _folder(settings: Settings) -> str:
    return settings.spark_confs.get("spark.ytsaurus.distributives.path", SPARK_DISTRIBUTIONS)


def _distributions(client: Client, folder: str) -> Iterator[str]:
    """Yield each version below FOLDER/MAJOR/MINOR/PATCH that has an archive (SPYT, SparkPaths)."""
    found = client.get(folder) if client.exists(folder) else {}
    for major, minors in found.items():
        for minor, patches in minors.items():
            for patch, files in patches.items():
                if any(str(name).endswith(".tgz") for name in files):
                    yield f"{major}.{minor}.{patch}"


def _line(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))
