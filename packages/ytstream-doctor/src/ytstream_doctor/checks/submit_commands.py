"""Checks of what a job's code and shell files do to queues and consumers."""

import ast
import re
from collections.abc import Iterator

from ..reading.inspected_job import CreatedTable, InspectedJob
from ..reading.syntax import GAP, UNKNOWN, BoundExpression, Step
from ..rules import Finding

_NOT_VITAL = r"register-queue-consumer\b.*(--non-vital|--no-vital|vital=(%?false|0))"
_NO_VERSIONS = r"min_data_versions[\"']?\s*[=:]\s*0\b|@min_data_versions[\"']?\s+0\b"
_PATH = r"""(?<![\w:])(?://|\$)[^\s"';|)]*"""
"""A path in a command, which variables may be a part of."""
_GAPS = rf"\$\{{[^}}]*\}}|\$\(\w+\)|\$\w+|{GAP}"


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield the commands after which rows may be gone before the job reads them."""
    for call, module in job.code.calls.get("register_queue_consumer", []):
        step = Step("register", call, job.code.context(call, module), call)
        queue = job.code.value(step.argument(0, "queue_path"))
        consumer = job.code.value(step.argument(1, "consumer_path"))
        is_vital = job.code.value(step.argument(2, "vital"))
        if is_vital is False and _is_of_the_job(job, queue, consumer):
            what = "the consumer is registered with vital=False"
            yield Finding(module.file, call.lineno, "consumer-not-vital", what)
    for file, line, text in job.commands(f"(?s){_NOT_VITAL}"):
        words = re.findall(_PATH, text.partition("register-queue-consumer")[2])
        if not _is_of_the_job(job, *(words if len(words) == 2 else (UNKNOWN, UNKNOWN))):
            continue
        what = "the consumer is registered as not vital"
        yield Finding(file, line, "consumer-not-vital", what)
    for table in job.tables:
        given = job.entry(table.attributes, table.context, "min_data_versions")
        if given and job.code.value(given) == 0 and _may_be_read(job, table):
            line = given.node.lineno
            yield Finding(table.file, line, "trimmed-by-age", "min_data_versions is 0")
    yield from _set_in_code(job)
    for file, line, text in job.commands(_NO_VERSIONS):
        path = re.search(_PATH, text)
        if _may_be_a_queue(job, path[0].partition("/@")[0] if path else UNKNOWN):
            yield Finding(file, line, "trimmed-by-age", "min_data_versions is 0")


def _set_in_code(job: InspectedJob) -> Iterator[Finding]:
    """Yield the calls of ``set(path + "/@min_data_versions", 0)`` and ``set_attribute``."""
    for name in ("set", "set_attribute"):
        for call, module in job.code.calls.get(name, []):
            context = job.code.context(call, module)
            words = [job.code.value(BoundExpression(word, context)) for word in call.args]
            path, _, attribute = str(words[0] if words else "").partition("/@")
            if name == "set_attribute" and len(words) > 1:
                path, attribute = str(words[0]), str(words[1])
            is_zero = attribute == "min_data_versions" and words[-1] == 0
            if is_zero and _may_be_a_queue(job, path):
                what = "min_data_versions is set to 0"
                yield Finding(module.file, _line(call), "trimmed-by-age", what)


def _line(call: ast.Call) -> int:
    return call.func.end_lineno or call.lineno


def _is_of_the_job(job: InspectedJob, queue: object, consumer: object) -> bool:
    """Return whether a registration may be of this job: of a path that is not known it may."""
    consumers = {source.options.value("consumer_path") for source in job.sources}
    return _may_be(queue, _queues(job)) and _may_be(consumer, consumers)


def _may_be_read(job: InspectedJob, table: CreatedTable) -> bool:
    """Return whether a table that the code creates may be one of the job's queues."""
    if job.keys(table) or any(job.is_output(table, query) for query in job.queries):
        return False
    named = {job.code.identity(source.path_at) for source in job.sources}
    return job.code.identity(table.path_at) in named or _may_be_a_queue(job, table.path)


def _may_be_a_queue(job: InspectedJob, path: object) -> bool:
    """Return whether the job may read that table; outputs may drop their old rows."""
    is_output = isinstance(path, str) and path in job.outputs
    return not is_output and _may_be(path, _queues(job))


def _queues(job: InspectedJob) -> set[object]:
    return {path for source in job.sources if source.is_of_spyt for path in source.paths}


def _may_be(path: object, known: set[object]) -> bool:
    """Return whether a path may be one of several; of each a part or all may be unknown."""
    return not known or any(_may_be_one(path, other) for other in known)


def _may_be_one(one: object, other: object) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return True
    if one == other:
        return True
    # Of two texts with gaps the ends have to agree.
    ends = [re.split(_GAPS, text)[-1] for text in (one, other)]
    if re.search(_GAPS, one) and re.search(_GAPS, other):
        return ends[0].endswith(ends[1]) or ends[1].endswith(ends[0])
    pattern, text = (one, other) if re.search(_GAPS, one) else (other, one)
    parts = [re.escape(part) for part in re.split(_GAPS, pattern)]
    return re.fullmatch(".*".join(parts), text) is not None
