"""Checks of a job's Spark settings and versions."""

import re
from collections.abc import Iterator

from ..reading.inspected_job import InspectedJob
from ..reading.spark_settings import Setting
from ..rules import WITHOUT_EFFECT, Finding, spellings

_PROXY = "spark.ytsaurus.rpc.job.proxy.enabled"
_TIMEOUT = "spark.hadoop.yt.timeout"
_PURGE = "spark.sql.streaming.asyncLogPurge.enabled"
_RETRIES = ("spark.task.maxFailures", "spark.stage.maxConsecutiveAttempts")
_DYN_BATCH = spellings("spark.yt.write.dynBatchSize")
_LARGE_WRITE = 5_000
"""Up to here some hundred tablets bear batches of any usual size (guarantees/sizing.py)."""
_UNITS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400}
_SHIPPED = 30
"""What SPYT 2.11 ships, in seconds: a value up to that is not an improvement."""
_VERSION = re.compile(r"(ytsaurus-spyt|pyspark)(?:\[[^\]]*\])?\s*(?:==|~=)\s*(\d+)\.(\d+)")
_FIRST = {"ytsaurus-spyt": (2, 11), "pyspark": (3, 5)}
_SPYT = "spark.ytsaurus.spyt.version"


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield what is wrong with the settings, those that are missing included."""
    yield from _without_effect(job)
    yield from _dangerous(job)
    if job.queries:
        yield from _required(job)
    if job.is_transactional:
        yield from _transactional(job)


def _at(setting: Setting, rule: str, what: str) -> Finding:
    return Finding(setting.file, setting.line, rule, what)


def _without_effect(job: InspectedJob) -> Iterator[Finding]:
    for setting in job.settings.found:
        why = WITHOUT_EFFECT.get(setting.key)
        known = spellings("spark.yt.streaming.transactional")
        if re.match(r"spark\.yt(saurus)?\.streaming\.", setting.key) and setting.key not in known:
            why = "SPYT has no such setting; of spark.yt.streaming it has only `transactional`"
        if why:
            yield _at(setting, "no-effect", f"{setting.key}: {why}")


def _dangerous(job: InspectedJob) -> Iterator[Finding]:
    for setting in job.settings.of("spark.speculation"):
        if setting.value == "true" and not _is_keyed(job):
            yield _at(setting, "speculation", "spark.speculation is on")


def _is_keyed(job: InspectedJob) -> bool:
    return bool(job.queries) and all(
        job.is_idempotent(query) or bool((job.keys_of(query) or (None, set()))[1])
        for query in job.queries
    )


def _required(job: InspectedJob) -> Iterator[Finding]:
    found = job.settings.of(_TIMEOUT)
    for setting in found:
        match = re.fullmatch(r"(\d+)\s*([a-z]*)", setting.value or "")
        if match and match[2] in _UNITS and int(match[1]) * _UNITS[match[2]] <= _SHIPPED:
            yield _at(setting, "timeout", f"{_TIMEOUT} is {setting.value}")
    if not found:
        yield _missing(job, "timeout", f"{_TIMEOUT} is not set")
    for setting in job.settings.of(_PURGE):
        if setting.value == "true":
            yield _at(setting, "async-log-purge", f"{_PURGE} is true")
    if not job.settings.of(_PURGE):
        yield _missing(job, "async-log-purge", f"{_PURGE} is not set")


def _transactional(job: InspectedJob) -> Iterator[Finding]:
    switch = next(
        setting
        for setting in job.settings.of(*spellings("spark.yt.streaming.transactional"))
        if setting.value == "true"
    )
    yield _at(switch, "commit-log", "the transactional mode has no recovery between the two")
    yield from _job_proxy(job, switch)
    if not _is_keyed(job):
        for key in _RETRIES:
            for setting in job.settings.of(key):
                if setting.value not in ("1", None):
                    yield _at(setting, "task-retries", f"{key} is {setting.value}")
            if not job.settings.of(key):
                yield _at(switch, "task-retries", f"{key} is not set")
        for setting in job.settings.of("spark.dynamicAllocation.enabled"):
            if setting.value == "true":
                what = "spark.dynamicAllocation.enabled is true"
                yield _at(setting, "dynamic-allocation", what)
        sizes = job.settings.of(*_DYN_BATCH)
        for setting in sizes:
            if (setting.value or "").isdigit() and int(setting.value or 0) > _LARGE_WRITE:
                yield _at(setting, "tablet-limit", f"{setting.value} rows in each write")
        if not sizes:
            yield _at(switch, "tablet-limit", f"{_DYN_BATCH[0]} is not set: 50000 rows a write")
    yield from _versions(job)


def _job_proxy(job: InspectedJob, switch: Setting) -> Iterator[Finding]:
    found = job.settings.of(_PROXY)
    at_submit = job.settings.at_submit(_PROXY)
    for setting in at_submit:
        if setting.value == "true":
            yield _at(setting, "job-proxy", f"{_PROXY} is true")
    if not found:
        yield _at(switch, "job-proxy", f"{_PROXY} is not set: SPYT's default is true")
    elif not at_submit:
        yield _at(found[0], "job-proxy", "it is set only in the session, not at submit")


def _versions(job: InspectedJob) -> Iterator[Finding]:
    for text in job.texts:
        for number, line in text.lines:
            for name, *version in _VERSION.findall(line):
                major, minor = map(int, version)
                if (major, minor) < _FIRST[name]:
                    what = f"{name} {major}.{minor}: transactional needs {_needed(name)}"
                    yield Finding(text.file, number, "old-version", what)
    for setting in job.settings.of(_SPYT):
        match = re.match(r"(\d+)\.(\d+)", setting.value or "")
        if match and (int(match[1]), int(match[2])) < _FIRST["ytsaurus-spyt"]:
            what = f"SPYT {setting.value}: transactional needs {_needed('ytsaurus-spyt')}"
            yield _at(setting, "old-version", what)


def _needed(name: str) -> str:
    return ".".join(map(str, _FIRST[name]))


def _missing(job: InspectedJob, rule: str, what: str) -> Finding:
    """Return a finding at the place where the session is made, or else the query."""
    for name in ("getOrCreate", "spark_session", "connect"):
        for call, module in job.code.calls.get(name, []):
            return Finding(module.file, call.end_lineno or call.lineno, rule, what)
    return Finding(job.queries[0].file, job.queries[0].line, rule, what)
