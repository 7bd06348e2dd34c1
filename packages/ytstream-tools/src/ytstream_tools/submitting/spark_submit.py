"""The call of spark-submit: its words, and the environment that it gets."""

import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ytstream.errors import JobError
from ytstream.errors.error_codes import ErrorCode
from ytstream.job import MOST_FAILURES
from ytstream.settings import spark_conf
from ytstream.settings.job_settings import token
from ytstream.settings.plain_path import plain, plain_file
from ytstream.version import version_of

from .launch_plan import ATTEMPT, ATTEMPT_MODULE, LaunchPlan, folder_of, parameters

_KEPT = re.compile(r"PATH|HOME|USER|LOGNAME|LANG|LC_\w+|TZ|TMPDIR|JAVA_HOME|JAVA_TOOL_OPTIONS")
"""The variables of this shell that spark-submit gets. SPYT turns every SPARK_* into a setting of
the public command (SparkConfDecorators), and Spark's scripts read many others."""
_NEUTRAL = (
    "SPARK_HOME", "SPARK_CONF_DIR", "SPARK_ENV_LOADED", "SPARK_SCALA_VERSION",
    "SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS", "SPARK_BEELINE_OPTS",
)  # fmt: skip
"""What spark-submit's own scripts set for this machine; a setting of the same name wins over each.
"""
_LISTS = ("--files", "--py-files", "--archives", "--jars")
"""Files by words of a person go beside ours: spark-submit takes the last of several."""


def command(plan: LaunchPlan, dump: Path) -> list[str]:
    """Return the call, without the token; spark-submit writes the operation's id to ``dump``."""
    settings, words = plan.settings, list(plan.words)
    if words and words[-1].startswith("--") and words[-1] != "--verbose":
        raise JobError(
            f"{words[-1]} has no value",
            "give one behind it; nothing was started",
            code=ErrorCode.USAGE,
        )
    lists = {
        "--py-files": str(plain_file(plan.package)),
        "--files": ",".join(str(plain_file(file)) for file in plan.files),
    }
    if plan.archive is not None:
        lists["--archives"] = plan.archive
    for name in _LISTS:
        while name in words:
            at = words.index(name)
            lists[name] = ",".join(filter(None, (lists.get(name, ""), *words[at + 1 : at + 2])))
            del words[at : at + 2]
    proxy = re.sub(r"^https?://", "", settings.proxy)
    line = [str(plain(folder_of("pyspark")) / "bin" / "spark-submit")]
    line += ["--master", f"ytsaurus://{proxy}", "--deploy-mode", "cluster"]
    line += ["--name", plan.context.job.name]
    line += ["--queue", settings.pool] if settings.pool else []
    for key, value in given(plan, dump).items():
        line += ["--conf", f"{key}={value}"]
    for name, value in lists.items():
        line += [name, value]
    return [*line, *words, str(plain_file(plan.main)), "--config", plan.config.name]


def given(plan: LaunchPlan, dump: Path) -> dict[str, str]:
    """Return the settings of Spark and SPYT that the call has."""
    values = plan.context.values
    values["executor_failures"] = MOST_FAILURES // plan.sizes.executors
    values["executor_overhead"] = plan.executor_overhead
    return {
        **{name.lower().replace("_", "."): "-" for name in _NEUTRAL},
        **plan.sizes.confs,
        **spark_conf.filled(iter(spark_conf.SUBMIT), values),
        **plan.context.session_settings(version_of("pyspark")),
        **parameters(plan),
        "spark.ytsaurus.driver.operation.dump.path": str(dump),
        # Every bash of the driver's job reads this file first: it waits after a failure.
        "spark.ytsaurus.driverEnv.BASH_ENV": f"./{ATTEMPT.name}",
        "spark.ytsaurus.driverEnv.YTSTREAM_ATTEMPT": f"./{plan.package.name}/{ATTEMPT_MODULE}",
        "spark.ytsaurus.driverEnv.YTSTREAM_PROXY": plan.settings.proxy,
        "spark.ytsaurus.driverEnv.YTSTREAM_PYTHON": plan.submit.python,
    }


def environment(plan: LaunchPlan, shell: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of spark-submit, the token in it."""
    return {
        **{name: value for name, value in shell.items() if _KEPT.fullmatch(name)},
        "YT_TOKEN": token(plan.settings, shell),
        # SPYT's defaults: which settings are secrets, and the file systems.
        "SPARK_CONF_DIR": str(plain(folder_of("spyt")) / "conf"),
        "SPARK_HOME": str(plain(folder_of("pyspark"))),
    }


def printed(line: list[str]) -> str:
    """Return the call as a person would type it, an option a line."""
    *options, main, config, name = line
    words = iter(options)
    lines = [next(words)]
    for word in words:
        pair = word.startswith("--")
        lines.append(f"{word} {shlex.quote(next(words, ''))}" if pair else shlex.quote(word))
    lines.append(f"{shlex.quote(main)} {config} {shlex.quote(name)}")
    return " \\\n  ".join(lines)
