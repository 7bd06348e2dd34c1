"""Checks of what a job's code and shell files do to queues and consumers."""

import ast
import re
from collections.abc import Iterator

from .job import Job
from .names import UNKNOWN, Bound, Step
from .rules import Finding

_NOT_VITAL = r"register-queue-consumer\b.*(--non-vital|--no-vital|vital=(%?false|0))"
_NO_VERSIONS = r"min_data_versions[\"']?\s*[=:]\s*0\b|@min_data_versions[\"']?\s+0\b"


def findings(job: Job) -> Iterator[Finding]:
    """Yield the commands after which rows may be gone before the job reads them."""
    for call, module in job.code.calls.get("register_queue_consumer", []):
        step = Step("register", call, job.code.context(call, module), call)
        if job.code.value(step.argument(2, "vital")) is False:
            what = "the consumer is registered with vital=False"
            yield Finding(module.file, call.lineno, "consumer-not-vital", what)
    for file, line, _ in job.commands(f"(?s){_NOT_VITAL}"):
        what = "the consumer is registered as not vital"
        yield Finding(file, line, "consumer-not-vital", what)
    for table in job.tables:
        given = job.entry(table.attributes, table.context, "min_data_versions")
        if given and job.code.value(given) == 0 and _may_be_a_queue(job, table.path):
            line = given.node.lineno
            yield Finding(table.file, line, "trimmed-by-age", "min_data_versions is 0")
    yield from _set_in_code(job)
    for file, line, text in job.commands(_NO_VERSIONS):
        path = re.search(r"//[\w./-]*\w", text)
        if _may_be_a_queue(job, path[0] if path else UNKNOWN):
            yield Finding(file, line, "trimmed-by-age", "min_data_versions is 0")


def _set_in_code(job: Job) -> Iterator[Finding]:
    """Yield the calls of ``set(path + "/@min_data_versions", 0)`` and ``set_attribute``."""
    for name in ("set", "set_attribute"):
        for call, module in job.code.calls.get(name, []):
            context = job.code.context(call, module)
            words = [job.code.value(Bound(word, context)) for word in call.args]
            path, _, attribute = str(words[0] if words else "").partition("/@")
            if name == "set_attribute" and len(words) > 1:
                path, attribute = str(words[0]), str(words[1])
            is_zero = attribute == "min_data_versions" and words[-1] == 0
            if is_zero and _may_be_a_queue(job, path):
                what = "min_data_versions is set to 0"
                yield Finding(module.file, _line(call), "trimmed-by-age", what)


def _line(call: ast.Call) -> int:
    return call.func.end_lineno or call.lineno


def _may_be_a_queue(job: Job, path: object) -> bool:
    """Return whether the job may read that table; outputs may drop their old rows."""
    queues = {path for source in job.sources for path in source.paths}
    if isinstance(path, str) and path in job.outputs:
        return False
    return not isinstance(path, str) or UNKNOWN in queues or None in queues or path in queues
