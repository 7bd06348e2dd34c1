"""Checks of a job's queries: options, guarantee, and what happens to the rows."""

import ast
import re
from collections.abc import Iterator

from ..reading.dataframes import UNIONS, QueueReader
from ..reading.inspected_job import InspectedJob
from ..reading.lost_positions import mentioned, words_of
from ..reading.queries import Query
from ..reading.reached_calls import Use, reached
from ..reading.syntax import UNKNOWN, BoundExpression, Step, called
from ..rules import Finding

_RANDOM = {
    "rand", "randn", "randstr", "uuid", "shuffle", "monotonically_increasing_id", "sample",
    "spark_partition_id", "input_file_name", "uniform",
}  # fmt: skip
_CLOCKS = {"current_timestamp", "current_date", "localtimestamp", "now", "curdate"}
_PYTHON = {
    "random": None,
    "secrets": None,
    "uuid": {"uuid1", "uuid4"},
    "time": {"time", "time_ns", "monotonic", "perf_counter"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
    "os": {"urandom"},
    "requests": None,
}
"""Calls of Python that give something else each time: module and names."""
_BARE = {"uuid1", "uuid4", "urandom", "randint", "getrandbits", "urlopen"}
_SEVERAL = {
    "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer",
    "flatMap", "groupBy", "groupby", "rollup", "cube", "join", "crossJoin", "distinct",
    "dropDuplicates", "drop_duplicates", "dropDuplicatesWithinWatermark", "limit",
    "mapInPandas", "mapInArrow", "applyInPandas", "applyInPandasWithState",
    "transformWithState", "transformWithStateInPandas", "agg", "stack",
}  # fmt: skip
_SQL_SEVERAL = _SEVERAL - {"join", "limit", "distinct"}
_SQL_CLAUSES = r"\b(group\s+by|join|select\s+distinct|limit\s+\d|lateral\s+view)\b"
_SQL_CALLERS = {"expr", "selectExpr", "filter", "where", "sql", "withColumn", "select"}
_COMPOSITE = {
    "array", "struct", "create_map", "map_from_arrays", "named_struct", "collect_list",
    "collect_set", "from_json", "ArrayType", "StructType", "MapType", "split",
}  # fmt: skip


def findings(job: InspectedJob) -> Iterator[Finding]:
    """Yield what is wrong with each query."""
    for query in job.queries:
        yield from _guarantee(job, query)
        yield from _composite(job, query)
        if job.is_idempotent(query):
            yield from _keyed(job, query)
            yield from _rows(job, query)


def _at(query: Query, rule: str, what: str) -> Finding:
    return Finding(query.file, query.line, rule, what)


def _guarantee(job: InspectedJob, query: Query) -> Iterator[Finding]:
    if call := query.step("foreachBatch"):
        what = "foreachBatch writes the rows"
        yield Finding(query.file, call.line, "foreach-batch", what)
        return
    known = job.keys_of(query)
    has_key = job.is_idempotent(query) or (known is not None and bool(known[1]))
    if lost := job.lost_at(query):
        if not job.is_transactional and not (known and _keeps(job, lost, known[1])):
            what = f"{lost.name}() leaves the positions out: the output is at least once"
            file = lost.context.module.file
            yield Finding(file, lost.line, "positions-lost", what)
    elif not job.is_transactional and not has_key:
        yield _at(query, "at-least-once", "neither transactional nor written under a key")


def _keeps(job: InspectedJob, step: Step, keys: set[str]) -> bool:
    """Return whether a select has all of a key that is another than the positions."""
    names = set()
    for node in step.call.args if step.call else ():
        names |= words_of(mentioned(job.code, BoundExpression(node, step.context)) or set())
    return bool(keys) and keys <= names


def _composite(job: InspectedJob, query: Query) -> Iterator[Finding]:
    uses = {called(use.node) for use in _uses(job, query)} & _COMPOSITE
    reads = [s for s in query.flow.sources if s.options.is_true("parsing_type_v3")]
    writes = query.options.value("write_type_v3")
    is_sink = query.options.value("format") == "yt"
    if is_sink and writes is not UNKNOWN and not query.options.is_true("write_type_v3"):
        if reads:
            what = "the reader has parsing_type_v3, the writer no write_type_v3"
            yield _at(query, "composite-types", what)
        elif uses & _COMPOSITE - {"split", "from_json"}:
            what = f"{', '.join(sorted(uses))}, but no write_type_v3"
            yield _at(query, "composite-types", what)
    if query.options.is_true("write_type_v3"):
        for source in query.flow.sources:
            if source.options.value("parsing_type_v3") in (None, False, "false"):
                what = "the writer has write_type_v3, the reader no parsing_type_v3"
                yield Finding(source.file, source.line, "composite-types", what)


# -- the idempotent receiver -----------------------------------------------------------------------


def _keyed(job: InspectedJob, query: Query) -> Iterator[Finding]:
    known = job.keys_of(query)
    if known and not known[1]:
        table = known[0]
        yield Finding(table.file, table.line, "output-not-keyed", "no column has a sort_order")
    sources = query.flow.sources
    if len(sources) < 2 and not any(source.is_many for source in sources):
        return
    if not query.is_traced:
        return
    for source in sources:
        names = _literals(job, source)
        if not names:
            what = "no column names the queue of these rows"
            yield Finding(source.file, source.line, "queue-key", what)
        elif known and known[1] and not names & known[1]:
            what = f"{', '.join(sorted(names))} is not among the key columns"
            yield Finding(known[0].file, known[0].line, "queue-key", what)
            return


def _literals(job: InspectedJob, source: QueueReader) -> set[str]:
    """Return the columns that are given a literal before this queue is united with others."""
    found = set()
    for step in source.steps:
        if step.name in UNIONS:
            break
        for use in reached(job.code, [*(step.call.args if step.call else [])], step.context):
            if called(use.node) == "lit":
                found.add(_column(job, step, use))
    return found


def _column(job: InspectedJob, step: Step, use: Use) -> str:
    if step.name == "withColumn":
        return str(job.code.value(step.argument(0, "colName")))
    outer = job.code.parents.get(use.node)
    call = job.code.parents.get(outer) if outer else None
    if isinstance(outer, ast.Attribute) and outer.attr == "alias" and isinstance(call, ast.Call):
        return str(job.code.value(BoundExpression(call.args[0], use.context))) if call.args else ""
    return ""


def _rows(job: InspectedJob, query: Query) -> Iterator[Finding]:
    for use in _uses(job, query):
        file, line, name = use.context.module.file, _line(use.node), called(use.node)
        if name in _RANDOM and not _is_plain_python(use.node):
            yield Finding(file, line, "not-deterministic", f"{name}() differs in each run")
        elif name in _CLOCKS or _is_clock_of_python(use.node):
            yield Finding(file, line, "not-deterministic", f"{_spelt(use.node)}() is a clock")
        elif _is_random_python(use.node):
            yield Finding(
                file, line, "not-deterministic", f"{_spelt(use.node)}() differs each time"
            )
        elif name in _SEVERAL and not _is_plain_python(use.node):
            yield Finding(file, line, "not-one-to-one", f"{name}() is not one row for one row")
        if name in _SQL_CALLERS:
            yield from _sql(job, use)


def _sql(job: InspectedJob, use: Use) -> Iterator[Finding]:
    for argument in use.node.args:
        text = job.code.value(BoundExpression(argument, use.context))
        if not isinstance(text, str) or (called(use.node) in ("select", "withColumn")):
            continue
        place = use.context.module.file, _line(use.node)
        names = set(re.findall(r"\b(\w+)\s*\(", text.lower())) | set(
            re.findall(r"\b(current_timestamp|current_date)\b", text.lower())
        )
        for name in sorted(names & (_RANDOM | _CLOCKS)):
            yield Finding(*place, "not-deterministic", f'SQL "{name}"')
        several = {each.lower() for each in _SQL_SEVERAL}
        clauses = re.findall(_SQL_CLAUSES, text.lower())
        for name in sorted(names & several) + (clauses if called(use.node) == "sql" else []):
            yield Finding(*place, "not-one-to-one", f'SQL "{name}"')


def _line(node: ast.Call) -> int:
    return node.func.end_lineno or node.lineno


def _owner(node: ast.Call) -> str:
    value = node.func.value if isinstance(node.func, ast.Attribute) else None
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ""


def _spelt(node: ast.Call) -> str:
    return f"{_owner(node)}.{called(node)}".lstrip(".")


def _is_plain_python(node: ast.Call) -> bool:
    """Return whether a call is of a text or a module of Python: ``", ".join(names)``."""
    value = node.func.value if isinstance(node.func, ast.Attribute) else None
    is_text = isinstance(value, ast.Constant | ast.JoinedStr)
    return is_text or _owner(node) in (*_PYTHON, "path")


def _is_random_python(node: ast.Call) -> bool:
    owner, name = _owner(node), called(node)
    if isinstance(node.func, ast.Name):
        return name in _BARE
    names = _PYTHON.get(owner, set())
    return owner in _PYTHON and (names is None or name in (names or ()))


def _is_clock_of_python(node: ast.Call) -> bool:
    return _owner(node) in ("time", "datetime", "date") and _is_random_python(node)


# -- what happens to the rows ----------------------------------------------------------------------


def _uses(job: InspectedJob, query: Query) -> list[Use]:
    """Return the calls on the way of the rows: methods of frames, functions, bodies of UDFs."""
    if not query.is_traced:
        return [
            Use(node, job.code.context(node, module))
            for module, node in job.code.walk()
            if isinstance(node, ast.Call) and module.file == query.file
        ]
    found: dict[ast.Call, Use] = {}
    for step in query.flow.steps:
        if step.call is None:
            continue
        found[step.call] = Use(step.call, step.context)
        given = [*step.call.args, *(word.value for word in step.call.keywords)]
        skipped = 1 if step.name in (*UNIONS, "join", "crossJoin", "transform") else 0
        for use in reached(job.code, given[skipped:], step.context):
            found.setdefault(use.node, use)
    return list(found.values())
