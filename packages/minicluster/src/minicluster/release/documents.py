"""The two documents that SPYT's client reads before it starts an operation.

The keys are those that SPYT's publisher writes for a cluster outside of Yandex (SPYT,
tools/release/publisher/config_generator.py).
"""

from __future__ import annotations

from typing import Any

ROOT = "//home/spark"
GLOBAL_CONF = f"{ROOT}/conf/global"


def release_folder(version: str) -> str:
    """Return the kind of a release and its version: a part of paths (SPYT, config/Utils.scala)."""
    if version.endswith("-SNAPSHOT"):
        return f"snapshots/{version}"
    is_early = any(word in version for word in ("alpha", "beta", "rc"))
    return f"{'pre-releases' if is_early else 'releases'}/{version}"


def launch_conf_path(version: str) -> str:
    return f"{ROOT}/conf/{release_folder(version)}/spark-launch-conf"


def spyt_path(version: str) -> str:
    """Return the folder with the files of a release."""
    return f"{ROOT}/spyt/{release_folder(version)}"


def spark_path(version: tuple[int, int, int]) -> str:
    """Return the folder in which SPYT takes the first ``*.tgz``."""
    return "/".join((f"{ROOT}/distrib", *map(str, version)))


def global_conf() -> dict[str, Any]:
    """Return what holds for all releases; SPYT's client fails without ``environment``."""
    return {
        "environment": {
            "IS_SPARK_CLUSTER": "true",
            "YT_ALLOW_HTTP_REQUESTS_TO_YT_FROM_JOB": "1",
            "ARROW_ENABLE_NULL_CHECK_FOR_GET": "false",
            "ARROW_ENABLE_UNSAFE_MEMORY_ACCESS": "true",
        },
        "operation_spec": {"job_cpu_monitor": {"enable_cpu_reclaim": "false"}},
        "worker_num_limit": 1000,
        "cuda_toolkit_version": "11.0",
        "spark_conf": {"spark.yt.log.enabled": "false"},
    }


def launch_conf(version: str) -> dict[str, Any]:
    """Return what holds for one release: its files, its settings of Spark, what it permits."""
    folder = spyt_path(version)
    return {
        "spark_conf": {
            "spark.yt.version": version,
            "spark.shuffle.service.port.interval.start": "27102",
            "spark.shuffle.service.port.interval.size": "50",
            "spark.hadoop.yt.read.arrow.enabled": "true",
            "spark.hadoop.yt.preferenceIpv6.enabled": "false",
        },
        "environment": {},
        "spark_yt_base_path": folder,
        "file_paths": [f"{folder}/spyt-package.zip", f"{folder}/setup-spyt-env.sh"],
        "layer_paths": [],
        "enablers": {
            "spark.ytsaurus.metrics.enabled": False,
            "spark.ytsaurus.logs.export.enabled": False,
            "spark.hadoop.yt.mtn.enabled": False,
            "spark.hadoop.yt.tcpProxy.enabled": True,
            "spark.ytsaurus.taskProxy.enabled": True,
            "spark.ytsaurus.squashfs.enabled": False,
        },
    }
