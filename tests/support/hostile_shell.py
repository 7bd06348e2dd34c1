"""A shell and a folder with all that can go wrong at once, for a demo that must not notice."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = "my jobs (1), it's 100% a&b #1 + задачи"
"""What class paths, URIs, lists, make and the shell give a meaning; and letters that ASCII lacks.
"""

_SPARK_DEFAULTS = (
    "spark.master yarn\nspark.sql.shuffle.partitions 1\nspark.submit.deployMode cluster\n"
)
_CORE_SITE = """<configuration>
  <property><name>fs.defaultFS</name><value>hdfs://namenode.example.com:8020</value></property>
</configuration>
"""
_BROKEN = 'raise SystemExit("this file belongs to other work")\n'
_DEAD = "http://127.0.0.1:9"

_VARIABLES = {
    # A cluster of the shell's, and what makes its client another one.
    "YT_PROXY": "cluster.example.com",
    "YT_TOKEN": "secret",
    "YT_SECURE_VAULT_YT_TOKEN": "secret",
    "YT_POOL": "research",
    "YT_CONFIG_PATCHES": "{proxy={url=cluster.example.com}}",
    # A proxy that answers nothing.
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _DEAD),
    **dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _DEAD),
    # Another Spark.
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "PYSPARK_PYTHON": "/nowhere/python",
    "PYSPARK_DRIVER_PYTHON": "jupyter",
    "SPARK_HOME": "/nowhere/spark",
    "SPARK_ENV_LOADED": "1",
    "SPARK_REMOTE": "sc://cluster.example.com",
    "SPARK_MASTER": "yarn",
    "SPYT_CLASSPATH": "/nowhere/*",
    "MASTER": "yarn",
    # The machine.
    "LC_ALL": "C",
    "CI": "true",
    "JAVA_TOOL_OPTIONS": "-Dfile.encoding=ISO-8859-1 -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=9",
    # As inside a hook of git.
    "GIT_DIR": "/nowhere/.git",
    "GIT_INDEX_FILE": "/nowhere/.git/index",
    "GIT_WORK_TREE": "/nowhere",
    # pip and uv, for other work.
    "PIP_REQUIRE_VIRTUALENV": "1",
    "PIP_USER": "1",
    "PIP_TARGET": "/nowhere/packages",
    "PIP_NO_DEPS": "1",
    "PIP_ONLY_BINARY": ":all:",
    "UV_SYSTEM_PYTHON": "1",
    "UV_NO_BUILD": "1",
    "PYTHONOPTIMIZE": "2",
    "PYTHONWARNINGS": "error",
    "PYTHONINSPECT": "1",
}


def environment(folder: Path) -> dict[str, str]:
    """Return the environment; the files that its variables name are made in ``folder``."""
    (folder / "temporary files").mkdir(parents=True)
    files = {
        "spark/spark-defaults.conf": _SPARK_DEFAULTS,
        "hadoop/core-site.xml": _CORE_SITE,
        "modules/py4j.py": _BROKEN,
        "modules/ytstream.py": _BROKEN,
        "startup.py": _BROKEN,
        "bash.sh": "exit 1\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    # Of the shell that runs the tests: what finds programs and packages.
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "JAVA_HOME") or name.startswith("PIP_")
    }
    return {
        **kept,
        **_VARIABLES,
        "HOME": str(folder / "no home"),  # programs of root create it
        "TMPDIR": str(folder / "temporary files"),
        "SPARK_CONF_DIR": str(folder / "spark"),
        "HADOOP_CONF_DIR": str(folder / "hadoop"),
        "YARN_CONF_DIR": str(folder / "hadoop"),
        "PYTHONPATH": str(folder / "modules"),
        "PYTHONSTARTUP": str(folder / "startup.py"),
        "BASH_ENV": str(folder / "bash.sh"),
    }
