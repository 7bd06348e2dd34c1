"""`python -m tools.api`: docs/api.md, made of the docstrings and comments of the code itself.

What a job imports is documented where it is written: a string after a field, a docstring in a
function with the sections Args, Returns and Raises.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from inspect import cleandoc
from itertools import pairwise
from pathlib import Path

from tests.support.project import ROOT
from ytstream import Column, Job
from ytstream.errors.error_codes import ErrorCode
from ytstream.guarantees.one_to_one import ACCEPTABLE
from ytstream.ownership.output_marks import SHARED
from ytstream.settings.job_settings import Settings, late_rows_of, one_tablet_of
from ytstream.settings.submit_section import SubmitSection
from ytstream.settings.validators import is_needed
from ytstream_tools.demo.job_sample import Sample

PAGE = ROOT / "docs" / "api.md"
RUNTIME = ROOT / "packages/ytstream/src/ytstream"
TOOLS = ROOT / "packages/ytstream-tools/src/ytstream_tools"
FIXTURES = TOOLS / "testing/pytest_fixtures.py"
TESTING = ("frames", "batches", "stream", "approved", "captured", "computed")
"""Modules whose names a job's tests import. Each is a list of names of ytstream-tools."""
OLD = {"connection"}
"""Fixtures with an older name, for repositories that an older version generated."""

_NAME = re.compile(
    r"""((?:[a-z]+/)*[a-z_]+\.[a-z]\w*(?:\.\w+)* | sample/\w*/? | ti\.\w+\[[\w.]+\] | \w+\(\)
    | "[^"]*" | \{\} | \b(?:REJECT(?:ED)?|QUEUE|OUTPUTS|STATE|STATIC|REFERENCE)\b)""",
    re.VERBOSE,
)
"""Files, settings, functions, texts and names of a user's files: code in a sentence."""

TOP = """\
# API reference

`python -m tools.api` writes this page from the docstrings of the code. Do not edit it.

Your files import these names from `ytstream`:

```python
from ytstream import DELETED, REJECTED, Column, Job, JobError
from ytstream import checked_state, json_of, latest, lookup, newest
from ytstream import Daily, Every, Hourly, days, minutes
```"""
REJECTED = """\
## `REJECTED`

The columns of the output `rejected`, for `OUTPUTS` in `tables.py`: `"rejected": REJECTED`. The key
columns are the position of the row in its queue. With several queues, `queue_id` comes first."""
DELETED = """\
## `DELETED`

The name of a boolean column that a function of `MERGE` may return: where it is true, the row leaves
the table. [Tables that change](merge.md#a-function) has an example."""
ERRORS = """\
Raise it in your own code to end the job with a message: `raise JobError("the feed is closed")`.
[Log messages](log.md#codes) says where you find the code of an error."""
ACCEPT = (
    ("join:unique-key", "`idempotent`", "each join with a table finds at most one row for a row of "
     "the queue, and the same row when a batch runs again"),
    ("subquery:constant", "`idempotent`", "no table that a subquery reads changes while the job "
     "exists"),
    ("output:shared", "all", "another job may also write to the ordered outputs of this one"),
    ("late:QUEUE", "jobs with state", "the job may skip late rows of the added queue `QUEUE`"),
    (
        "one_tablet:OUTPUT", 'outputs with `aggregate="first"`',
        "all rows of a key of `OUTPUT` are in one tablet of one queue",
    ),
)  # fmt: skip
FIXTURE_TEXT = """\
`tests/conftest.py` of a generated repository loads the plugin `ytstream.testing.fixtures` and
defines two more fixtures: `job`, the `JOB` of `job.py`, and `sample`, the `SAMPLE` of `sample/`."""
CONFIGURATION = """\
## Configuration

`config/local.toml` is for the minicluster on your machine, `config/production.toml` for the
cluster. A file with `extends = "production.toml"` has only the keys that differ. An unknown key is
an error that names the nearest known one. The token comes from `YT_TOKEN`, never from a file."""
SUBMIT = """\
How `make submit` starts the job. All keys are optional. Sizes that you leave out are those of the
cluster or of SPYT. `make confs` shows the values."""


def page() -> str:
    """Return the page."""
    job, settings = RUNTIME / "job.py", RUNTIME / "settings/job_settings.py"
    submit, columns = RUNTIME / "settings/submit_section.py", RUNTIME / "schema/columns.py"
    errors, sample = RUNTIME / "errors/__init__.py", TOOLS / "demo/job_sample.py"
    names = [accepted[0] for accepted in ACCEPT]
    assert names == [
        *ACCEPTABLE.values(), SHARED, late_rows_of("QUEUE"), one_tablet_of("OUTPUT")
    ]  # fmt: skip
    parts = [
        TOP,
        f"## `Job`\n\n{_doc(_find(job, 'Job'))}",
        _fields(job, Job),
        f"## `Column`\n\n{_doc(_find(columns, 'Column'))}",
        _fields(columns, Column),
        REJECTED,
        *_functions(RUNTIME / "declaration/latest_per_key.py", ["latest"], "##"),
        *_functions(RUNTIME / "declaration/checked_state.py", ["checked_state"], "##"),
        *_functions(RUNTIME / "connector/json_of.py", ["json_of"], "##"),
        *_functions(RUNTIME / "declaration/lookups.py", ["lookup"], "##"),
        *_functions(
            RUNTIME / "schema/periods.py", ["Hourly", "Daily", "Every", "days", "minutes"], "##"
        ),
        *_functions(RUNTIME / "schema/changes.py", ["newest"], "##"),
        DELETED,
        f"## `JobError`\n\n{_error(errors, 'JobError')}\n\n{ERRORS}",
        f"### Error codes\n\n{_codes()}",
        f"## `RestartableError`\n\n{_error(errors, 'RestartableError')}",
        f"## Sample\n\n{_doc(_find(sample, 'Sample'))}",
        "```python\nfrom ytstream.demo.sample import Sample\n```",
        _fields(sample, Sample),
        f"## Test fixtures\n\n{FIXTURE_TEXT}",
        _fixtures(),
        *(part for module in TESTING for part in _testing(module)),
        CONFIGURATION,
        _keys(settings, Settings),
        f"### `[submit]`\n\n{SUBMIT}",
        _keys(submit, SubmitSection),
        "### `accept`\n\nEach entry waives one check. A start shows the entries again.",
        _table(("entry", "for", "you confirm that"), ((f"`{n}`", w, t) for n, w, t in ACCEPT)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text(encoding="utf-8")).body


def _find(path: Path, name: str) -> ast.ClassDef | ast.FunctionDef:
    """Return the class or function of a module."""
    for node in _body(path):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
    raise LookupError(f"{path}: no {name}")


def _method(path: Path, of: str, name: str) -> ast.FunctionDef:
    (found,) = (
        node
        for node in _find(path, of).body
        if isinstance(node, ast.FunctionDef) and node.name == name
    )
    return found


def _doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    """Return a docstring as Markdown."""
    text = ast.get_docstring(node)
    if not text:
        raise LookupError(f"{node.name} has no docstring")
    return _markdown(_SECTION.sub(_section, cleandoc(text)))


_SECTION = re.compile(r"^(Args|Returns|Raises):\n((?: {4}.*\n?)+)", re.MULTILINE)
"""Args, Returns and Raises, each with its indented lines."""


def _section(found: re.Match[str]) -> str:
    """Return a section of a docstring as Markdown: what it describes is a list."""
    kind, text = found[1], cleandoc(found[2])
    if kind == "Returns":
        return f"Returns {' '.join(text.split())}.\n"
    items = re.sub(r"^(\w+): ", "- `\\1`: ", text, flags=re.MULTILINE)
    return f"{'Arguments' if kind == 'Args' else kind}:\n\n{items}\n"


def _markdown(text: str) -> str:
    """Return a comment or docstring with its names as code."""
    parts = re.split(r"(`[^`]*`)", text.replace("``", "`"))
    return "".join(part if n % 2 else _NAME.sub(r"`\1`", part) for n, part in enumerate(parts))


def _comments(path: Path, of: str) -> dict[str, str]:
    """Return the string after each field of a class. Raises LookupError for one without text."""
    found: dict[str, str] = {}
    body = _find(path, of).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if not (text := _text(after)):
            raise LookupError(f"{path}: {of}.{node.target.id} has no text")
        found[node.target.id] = _markdown(text)
    return found


def _text(node: ast.stmt | None) -> str:
    """Return a statement that is a string, in one line; empty for another."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return " ".join(str(node.value.value).split())
    return ""


def _default(key: Field[object]) -> object:
    if key.default_factory is not MISSING:
        return key.default_factory()
    return key.default


def _fields(path: Path, of: type) -> str:
    """Return the table of the fields of a class."""
    types = {
        node.target.id: ast.unparse(node.annotation).replace(" | ", " or ")
        for node in _find(path, of.__name__).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    comments = _comments(path, of.__name__)
    rows = (
        (
            f"`{key.name}`",
            f"`{types[key.name]}`",
            "required" if is_needed(key) else f"`{_default(key)!r}`",
            comments[key.name],
        )
        for key in fields(of)
        if not key.name.startswith("_")
    )
    return _table(("field", "type", "default", "meaning"), rows)


def _keys(path: Path, of: type) -> str:
    """Return the table of the keys of the configuration that become the fields of a class."""
    comments = _comments(path, of.__name__)
    rows = (
        (
            f"`[{key.name}]`" if key.name in TABLES else f"`{key.name}`",
            _toml(key),
            _wanted(str(key.metadata["wanted"])),
            comments[key.name],
        )
        for key in fields(of)
    )
    return _table(("key", "default", "value", "meaning"), rows)


def _wanted(text: str) -> str:
    """Return what a value may be, with its example as code."""
    return re.sub(r"(?<=such as )(.+?)(?=, with |$)|\[submit\]", lambda one: f"`{one[0]}`", text)


TABLES = {"outputs", "spark", "submit"}
"""Keys whose value is a table of the file."""


def _toml(key: Field[object]) -> str:
    if is_needed(key):
        return "required"
    value = _default(key)
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case str():
            return f'`"{value}"`'
        case int() | float():
            return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
        case ():
            return "`[]`"
    return ""


def _codes() -> str:
    """Return the table of the error codes, with who fixes each."""
    path = RUNTIME / "errors/error_codes.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    headings = [(n, re.match(r" +# -- (.+?) -+$", line)) for n, line in enumerate(lines, 1)]
    body = _find(path, "ErrorCode").body
    found: list[tuple[str, str, str]] = []
    for node, after in pairwise(body):
        if isinstance(node, ast.Assign) and (text := _text(after)):
            (name,) = map(ast.unparse, node.targets)
            *_, group = (one[1] for line, one in headings if one and line < node.lineno)
            found.append((f"`{ErrorCode[name]}`", _markdown(text), group))
    if [code for code, _, _ in found] != [f"`{code}`" for code in ErrorCode]:
        raise LookupError(f"{path}: a code without a text")
    return _table(("code", "what is wrong", "who fixes it"), iter(found))


def _signature(node: ast.FunctionDef, name: str = "") -> str:
    """Return a function's head in code."""
    copy = ast.parse(ast.unparse(node)).body[0]
    assert isinstance(copy, ast.FunctionDef)
    copy.args.args = [one for one in copy.args.args if one.arg != "self"]
    back = f" -> {ast.unparse(node.returns)}" if node.returns and not name else ""
    return f"{name or node.name}({ast.unparse(copy.args)}){back}"


def _code(text: str) -> str:
    return f"```python\n{text}\n```"


def _described(node: ast.FunctionDef, text: ast.ClassDef | ast.FunctionDef | None = None) -> str:
    """Return the text of a function. Raises LookupError if it leaves a parameter out."""
    listed = _SECTION.search(cleandoc(ast.get_docstring(text or node) or ""))
    described = re.findall(r"^    (\w+): ", listed[2], re.MULTILINE) if listed else []
    a = node.args
    names = [one.arg for one in (*a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs)]
    if described != [name for name in names if name != "self"]:
        raise LookupError(f"{node.name}: the docstring describes {described}, not {names}")
    return _doc(text or node)


def _functions(path: Path, names: Sequence[str], level: str) -> Iterator[str]:
    for name in names:
        node = _find(path, name)
        assert isinstance(node, ast.FunctionDef)
        yield f"{level} `{name}`\n\n{_code(_signature(node))}\n\n{_described(node)}"


def _error(path: Path, name: str) -> str:
    """Return the head and the text of an exception. Its class describes what it is made of."""
    made = _method(path, name, "__init__")
    return f"{_code(_signature(made, name))}\n\n{_described(made, _find(path, name))}"


def _fixtures() -> str:
    found: list[tuple[str, str, str, str]] = []
    for node in _body(FIXTURES):
        if not isinstance(node, ast.FunctionDef) or node.name in OLD:
            continue
        for decorator in map(ast.unparse, node.decorator_list):
            if decorator.startswith("pytest.fixture"):
                assert node.returns
                scope = "session" if "session" in decorator else "test"
                back = ast.unparse(node.returns).removeprefix("Iterator[").removesuffix("]")
                line = _doc(node).partition("\n")[0]
                found.append((f"`{node.name}`", f"`{back}`", scope, line))
    return _table(("fixture", "type", "scope", "meaning"), iter(found))


def _testing(module: str) -> Iterator[str]:
    """Yield the section of a module of ytstream.testing."""
    (imports,) = (
        [one for one in node.body if isinstance(one, ast.ImportFrom)]
        for node in _body(RUNTIME / f"testing/{module}.py")
        if isinstance(node, ast.If)
    )
    names = [alias.name for one in imports for alias in one.names]
    source = TOOLS.parent / f"{str(imports[0].module).replace('.', '/')}.py"
    yield f"### `ytstream.testing.{module}`"
    for name in names:
        node = _find(source, name)
        if isinstance(node, ast.FunctionDef):
            yield f"{_code(_signature(node))}\n\n{_described(node)}"
            continue
        yield f"`{name}`: {_doc(node)}"
        methods = [
            (f"`{_signature(one)}`".replace(" | ", " or "), _doc(one).partition("\n")[0])
            for one in node.body
            if isinstance(one, ast.FunctionDef)
            and not one.name.startswith("_")
            and not any(ast.unparse(d) == "property" for d in one.decorator_list)
        ]
        yield _table(("method", "meaning"), iter(methods))


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
