"""Each mistake of a user gets one message: what is wrong, where, what to do; no traceback.

One table: a file of the job, what is changed in it, the command, and the whole message.
tests/template has the mistakes in answers to the template and in the use of make.
"""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

from minicluster.testing import Running
from tests.support.examples import TEMPLATES
from tests.support.helpers import ContextOf, refusal
from ytstream import JobError, cli
from ytstream.cluster.client import connect
from ytstream.connector.tablet_transactions import Tablets
from ytstream.guarantees import guarantee_of
from ytstream.job import JobContext
from ytstream.ledger.ledger_rows import Head, head_row
from ytstream.log import failure_in
from ytstream.ownership.job_marker import marker_of
from ytstream.provisioning import job_objects
from ytstream.query import pipeline, supervisor
from ytstream.recovery.epoch import Epoch
from ytstream.settings.job_settings import load
from ytstream.spark import session
from ytstream.spark.spark_errors import explained_spark

MAIN = TEMPLATES.parent / "{{cookiecutter.project_slug}}/src/{{cookiecutter.__package}}/__main__.py"

FILES = {
    "src/bids/__main__.py": MAIN,
    "src/bids/job.py": TEMPLATES / "map/job.py",
    "src/bids/tables.py": TEMPLATES / "map/tables.py",
    "src/bids/transform.py": TEMPLATES / "map/transform.py",
    "sample/__init__.py": TEMPLATES / "shared/sample.py",
    "sample/rows.py": TEMPLATES / "shared/rows.py",
    "sample/expected.py": TEMPLATES / "map/expected.py",
}
"""File of the job -> file of the template. None of them but job.py has Jinja in it."""
ANSWERS = {"project_slug": "bids", "processing": "map", "guarantee": "transactional"}
CONFIG = """\
proxy = "127.0.0.1:1"
allow_env_proxy = true
queues = ["//home/mistakes/bids"]
create_queues = true
consumer = "//home/mistakes/consumer"
checkpoint = "//home/mistakes/checkpoint"
ledger = "//home/mistakes/ledger"
dyn_batch_size = 1_000

[outputs]
output = "//home/mistakes/output"
rejected = "//home/mistakes/rejected"
"""
JOB, TABLES, TRANSFORM = "src/bids/job.py", "src/bids/tables.py", "src/bids/transform.py"
ROWS, EXPECTED, TOML = "sample/rows.py", "sample/expected.py", "config/local.toml"
ELSEWHERE = 'proxy = "yt.example.net"'


class Mistake(NamedTuple):
    """A file whose text ``old`` became ``new``, and what the command then says."""

    name: str
    file: str
    old: str
    new: str
    message: str
    remedy: str
    command: str = "tables"
    environment: Mapping[str, str] = {}


LINE = "correct that line"
"""Remedies that several of them have."""
STARTED = "correct that line; nothing was started"
DECLARED = "correct job.py or tables.py; nothing was started"
CONFIGURED = "correct the configuration or tables.py; nothing was started"
FILE = "correct the file; nothing was started"
SAMPLED = "correct sample/rows.py or tables.py"

# A table, an entry a mistake.
# fmt: off
MISTAKES = (
    Mistake("no bracket", TRANSFORM, "events.select(", "events.select((",
            "transform.py:25: '(' was never closed", LINE),
    Mistake("no colon", TABLES, "OUTPUTS = {", "if True\nOUTPUTS = {", "tables.py:27: expected ':'",
            LINE),
    Mistake("no comma", JOB, "queue=QUEUE,", "queue=QUEUE",
            "job.py:13: invalid syntax. Perhaps you forgot a comma?", LINE),
    Mistake("indented", ROWS, "EVENT_TIME =", "  EVENT_TIME =", "rows.py:14: unexpected indent",
            LINE, command="rows"),
    Mistake("no quote", EXPECTED, '"url", ', '"url, ',
            "expected.py:11: unterminated string literal (detected at line 11)", LINE,
            command="rows"),
    Mistake("import of a name", TRANSFORM, "functions as F", "function as F",
            "the job cannot be imported: ImportError: cannot import name 'function' from "
            "'pyspark.sql' (transform.py:4)", STARTED),
    Mistake("import of a module", TRANSFORM, "from pyspark.sql import DataFrame", "import pandaz",
            "the job cannot be imported: ModuleNotFoundError: No module named 'pandaz' "
            "(transform.py:3)", STARTED),
    Mistake("unknown name", TABLES, 'Column("auction"', 'Colum("auction"',
            "the job cannot be imported: NameError: name 'Colum' is not defined (tables.py:16)",
            STARTED),
    Mistake("exit", TABLES, "OUTPUTS = {", "raise SystemExit(3)\nOUTPUTS = {",
            "the job cannot be imported: SystemExit: 3 (tables.py:27)", STARTED),
    Mistake("no outputs", JOB, "    outputs=OUTPUTS,\n", "",
            "the job cannot be imported: TypeError: Job.__init__() missing 1 required "
            "keyword-only argument: 'outputs' (job.py:8)", STARTED),
    Mistake("unknown argument", JOB, "guarantee=", "garantee=",
            "the job cannot be imported: TypeError: Job.__init__() got an unexpected keyword "
            "argument 'garantee' (job.py:8)", STARTED),
    Mistake("no JOB", JOB, "JOB = ", "THE_JOB = ",
            "the job cannot be imported: ImportError: cannot import name 'JOB' from 'bids.job'",
            "correct it; nothing was started"),
    Mistake("JOB is no Job", JOB, "JOB = Job(", "JOB = dict(", "JOB in job.py is not a Job",
            "write JOB = Job(...)"),
    Mistake("processing", JOB, '"map"', '"mapp"', "job.py: unknown processing 'mapp'",
            "use one of map, window, join, deduplicate, aggregate, merge, sessions"),
    Mistake("guarantee", JOB, '"transactional"', '"exactly_once"',
            "job.py: unknown guarantee 'exactly_once'",
            "use one of transactional, idempotent, at_least_once"),
    Mistake("idempotent without its key", JOB, '"transactional"', '"idempotent"',
            "the configuration and the job do not fit:\n"
            "  idempotent with 1 queue needs the key columns tablet_index, row_index in "
            "front of OUTPUTS['output']; it has none", CONFIGURED),
    Mistake("join without a reference", JOB, '"map"', '"join"',
            "job.py and tables.py do not fit:\n"
            "  a join needs REFERENCE, or REFERENCES for lookup()", DECLARED),
    Mistake("a line of a former job.py", JOB, "    reject=", '    made_for="1.0.0",\n    reject=',
            "the job cannot be imported: TypeError: Job.__init__() got an unexpected keyword "
            "argument 'made_for' (job.py:8)",
            "remove the line made_for=... from job.py; nothing was started"),
    Mistake("number of partitions", JOB, "    reject=", "    most_failures=0,\n    reject=",
            "job.py cannot be read:\n  most_failures=0: wanted a positive number", DECLARED),
    Mistake("transform is no function", JOB, "transform=transform", "transform='transform'",
            "job.py and tables.py do not fit:\n  transform is not a function", DECLARED),
    Mistake("no comma behind a column", TABLES, "OUTPUTS = {",
            'OUTPUTS = {"output": (Column("a", "utf8")), "more": None}\n_ = {',
            "job.py cannot be read:\n  outputs['output']=Column(name='a', type='utf8', "
            "required=False, key=False, aggregate=None): wanted a list\n  outputs['more']=None: "
            "wanted a list",
            DECLARED),
    Mistake("two outputs", TABLES, "OUTPUTS = {",
            'OUTPUTS = {"output": QUEUE, "bad": QUEUE}\n_ = {',
            "job.py and tables.py do not fit:\n  nothing fills the outputs bad: give Job "
            "split=outputs, the function of transform.py\n  REJECT needs an output in OUTPUTS: "
            "'rejected': REJECTED, which ytstream exports: see docs/operations.md, "
            '"Rejected rows"',
            DECLARED),
    Mistake("no column", TABLES, 'Column("auction", "int64", required=True)', '("auction",)',
            "tables.py, QUEUE[1], ('auction',): wanted a Column, or (name, type, required)",
            'e.g. Column("price", "int64", required=True)'),
    Mistake("unknown type", TABLES, '"price", "int64"', '"price", "integer"',
            "tables.py, QUEUE[3], column price: there is no type 'integer'",
            "use a yt.type_info type or one of int8, int16, int32, int64, uint8, uint16, "
            "uint32, uint64, float, double, bool, string, utf8, json, uuid, date, datetime, "
            "timestamp, interval, date32, datetime64, timestamp64, interval64, boolean, any"),
    Mistake("decimal", TABLES, '"price_eur", "int64"', '"price_eur", ti.Decimal(10, 2)',
            "job.py and tables.py do not fit:\n"
            "  OUTPUTS['output'], column price_eur: SPYT's sink cannot write decimals: store "
            "int64 minor units or a string", DECLARED),
    Mistake("uuid", TABLES, '"price_eur", "int64"', '"price_eur", "uuid"',
            "job.py and tables.py do not fit:\n"
            "  OUTPUTS['output'], column price_eur: SPYT's sink sends a uuid as text, the "
            "table wants 16 bytes: declare utf8", DECLARED),
    Mistake("time in a list", TABLES, '"price_eur", "int64"', '"price_eur", ti.List[ti.Date]',
            "job.py and tables.py do not fit:\n"
            "  OUTPUTS['output'], column price_eur: dates and times inside lists, structs "
            "and dicts are sent as plain integers and refused by the table: declare and cast "
            "them to int64 or a string", DECLARED),
    Mistake("nullable type", TABLES, '"price", "int64"', '"price", ti.Optional[ti.Int64]',
            "tables.py, QUEUE[3], column price: ti.Optional[ti.Int64] may be null",
            "name the type inside it, and leave required=True out: the column may then be null"),
    Mistake("column twice", TABLES, 'Column("bidder"', 'Column("Auction"',
            "tables.py, QUEUE[2], column Auction: duplicate column name",
            "rename one of the columns"),
    Mistake("dot in a name of the queue", TABLES, 'Column("bidder"', 'Column("user.id"',
            "tables.py, QUEUE[2], column user.id: Spark takes a dot in a name for a field of a "
            "struct, and a backtick for a quote",
            "leave the column out, a queue may have more than the job reads; or rename it"),
    Mistake("backtick in a name of an output", TABLES, '"price_eur"', '"price`eur"',
            "tables.py, OUTPUTS['output'][3], column price`eur: Spark takes a dot in a name for a "
            "field of a struct, and a backtick for a quote", "rename it"),
    Mistake("key in the queue", TABLES, '"auction", "int64"', '"auction", "int64", key=True',
            "tables.py, QUEUE[1], column auction: a key column after one that is not",
            "list the key columns first"),
    Mistake("no TOML", TOML, "create_queues = true", "create_queues = yes",
            "config/local.toml is not valid TOML: Invalid value (at line 4, column 17)", LINE),
    Mistake("unknown key", TOML, "dyn_batch_size", "dyn_batchsize",
            "config/local.toml: unknown key 'dyn_batchsize'; did you mean 'dyn_batch_size'?", FILE),
    Mistake("wrong value", TOML, "dyn_batch_size = 1_000", 'trigger_seconds = "5s"',
            "config/local.toml: trigger_seconds = '5s': wanted a number of seconds from 0.1 "
            "to 3600 (AvailableNow is not offered: SPYT's source then reads everything in "
            "one batch and never moves the consumer)", FILE),
    Mistake("no outputs in TOML", TOML, "[outputs]", "[output]",
            "config/local.toml: unknown key 'output'; did you mean 'outputs'?\n"
            "config/local.toml: missing key 'outputs'", FILE),
    Mistake("path twice", TOML, "mistakes/consumer", "mistakes/checkpoint",
            "config/local.toml: //home/mistakes/checkpoint is named twice", FILE),
    Mistake("protected conf", TOML, "[outputs]", "[spark]\nspark.task.maxFailures = 4\n\n[outputs]",
            "the configuration and the job do not fit:\n"
            "  [spark] sets spark.task.maxFailures: `make confs` shows its reason", CONFIGURED),
    Mistake("no file", TOML, CONFIG, "",
            "cannot read the configuration config/prod.toml: No such file or directory",
            "name an existing file with --config, e.g. --config config/production.toml",
            command="tables --config config/prod.toml"),
    Mistake("YT_PROXY", TOML, "", "",
            "YT_PROXY=yt.example.net in the environment, but config/local.toml says proxy = "
            "'127.0.0.1:1' and takes addresses of this machine only",
            "unset YT_PROXY, or name the configuration of that cluster with --config",
            environment={"YT_PROXY": "yt.example.net"}),
    Mistake("no token", TOML, 'proxy = "127.0.0.1:1"', ELSEWHERE,
            "no token for yt.example.net: YT_TOKEN is not set",
            "export YT_TOKEN=... in the shell (never in a file of this repository)",
            command="status", environment={"YT_PROXY": ""}),
    Mistake("submit to this machine", TOML, "", "",
            "CLUSTER is this machine: its minicluster runs no operations",
            "use `make demo` here, submit with CONFIG=config/production.toml, or start it by "
            "`python -m minicluster --operations`", command="submit"),
    Mistake("no cluster", TOML, "", "",
            "cannot reach the cluster at 127.0.0.1:1: Connection refused",
            "start `python -m minicluster` in another terminal", command="status",
            environment={"YT_PROXY": "127.0.0.1:1"}),
    Mistake("nothing is there", TOML, "mistakes", "nowhere",
            "the job cannot start:\nqueue //home/nowhere/bids: missing", "run `provision`",
            command="run"),
    Mistake("import the cluster lacks", TRANSFORM, "EUR_PER", "import hypothesis\n\nEUR_PER",
            "a job has only the standard library, pyspark, spyt and ytsaurus-client:\n"
            "  transform.py:7 imports hypothesis",
            "put its sources into the package, which travels whole, or bring it by archive, under "
            "[submit]",
            command="check"),
    Mistake("text for a number", ROWS, '"bidder": 1 + source.randrange(10_000)', '"bidder": "x"',
            "rows() in sample/rows.py, row 0: bidder = 'x', tables.py says int64",
            SAMPLED, command="rows"),
    Mistake("number too large", ROWS, '"bidder": 1', '"bidder": 2**63',
            "rows() in sample/rows.py, row 0: bidder = 9223372036854783925, tables.py says int64",
            SAMPLED,
            command="rows"),
    Mistake("no value", ROWS, '"bidder": 1', '"bidder": None and 1',
            "rows() in sample/rows.py, row 0: bidder is required and has no value", SAMPLED,
            command="rows"),
    Mistake("no such column", ROWS, '"bidder": 1', '"buyer": 1',
            "rows() in sample/rows.py, row 0: there is no column 'buyer'; bidder is required "
            "and has no value", SAMPLED, command="rows"),
    Mistake("no rows", ROWS, "range(count)", "range(0)", "rows() in sample/rows.py yields no rows",
            "yield at least one", command="rows"),
    Mistake("rows() raises", ROWS, "now = start_us", 'now = {}["start"]',
            "rows() in sample/rows.py failed: KeyError: 'start' (rows.py:27)", STARTED,
            command="rows"),
    Mistake("rows() is missing", ROWS, "def rows(", "def make_rows(",
            "sample/ cannot be imported: AttributeError: module 'sample.rows' has no "
            "attribute 'rows' (__init__.py:8)", STARTED, command="rows"),
    Mistake("event time", ROWS, '"date_time"\n', '"time"\n',
            "EVENT_TIME in sample/rows.py is 'time', no column of its rows",
            "name the column of the event time, or None for rows without one", command="rows"),
    Mistake("a file in the way", "build", "", "x", "build: File exists",
            "correct the path or its rights", command="demo"),
    Mistake("text in sample/", ROWS, "import random", "import rand",
            "sample/ cannot be imported: ModuleNotFoundError: No module named 'rand' "
            "(rows.py:5)", STARTED, command="rows"),
)

WRONG_EXPECTED = (
    ("yield {", "return {", "returns one row\n  -> yield it, or return a list"),
    ("yield {", "_ = {", "gives None, wanted rows\n  -> yield a dict for each row"),
    ("yield {", "yield 5\n        _ = {", "gives 5, wanted rows\n  -> yield a dict for each row"),
    ('row["price"]', 'row["prise"]',
     f" failed: KeyError: 'prise' (expected.py:18)\n  -> {STARTED}"),
    ('"price_eur": ', '"price": ',
     ", row 0: there is no 'price_eur'\n  -> give every column of OUTPUTS in tables.py"),
    (" * 908 // 1000", " * 908 / 1000",
     ", row 0: price_eur = 961441.248, tables.py says int64\n"
     "  -> correct sample/expected.py or tables.py"),
)
"""Those in expected.py, as the demo and the tests meet them: the message alone."""

PLANNED = "correct transform.py or tables.py; nothing was started"
SPARKS = (
    "correct transform.py (try_cast gives null for what cannot be cast) or the data; committed "
    "rows are kept"
)
_SELECT = "return events.select("
_ACTION = (
    "transform() runs an action, such as count(), collect() or show(), on the rows of the stream "
    "(transform.py:25): there are none before a batch"
)
ACTIONS = (
    "remove the action; outputs() may run one on the rows of each batch, and `preview` shows rows "
    "of the sample"
)
QUERY = (
    "transform() starts a query of its own (transform.py:25). It was not started: the job has one "
    "query, and the ledger covers only that",
    "return the rows instead of writeStream...start(); for rows of another kind, name one more "
    "output in OUTPUTS and return it from outputs()",
)
WRONG_TRANSFORM = (
    (_SELECT, "events.select(", "transform() returns None, wanted a DataFrame", "return the rows"),
    (_SELECT, "return 5\n    return events.select(",
     "transform() returns 5, wanted a DataFrame", "return the rows"),
    (_SELECT, "1 / 0\n    return events.select(",
     "transform() failed: ZeroDivisionError: division by zero (transform.py:25)",
     "correct transform.py"),
    ("events: DataFrame", "events: DataFrame, more: DataFrame",
     "transform() failed: TypeError: transform() missing 1 required positional argument: 'more'",
     "correct transform.py"),
    ('"channel",', "",
     "transform() and OUTPUTS['output'] in tables.py disagree:\n"
     "  column channel: not returned by transform()", PLANNED),
    ('"channel",', '"channel", F.lit(1).alias("one"),',
     "transform() and OUTPUTS['output'] in tables.py disagree:\n"
     "  column one: returned by transform(), not in OUTPUTS; to keep it, add "
     'Column("one", "int32") there', PLANNED),
    ('"bidder",', '"bidder", "bidder",',
     "transform() and OUTPUTS['output'] in tables.py disagree:\n"
     "  duplicate column name: event_id, auction, bidder, bidder, price_eur, channel, url, "
     "date_time, extra", PLANNED),
    ("price_eur.alias", "(F.col('price') * 0.908).alias",
     "transform() and OUTPUTS['output'] in tables.py disagree:\n"
     "  column price_eur: transform() gives Spark's double, the table has int64: "
     'cast it, .cast("long"), or change tables.py', PLANNED),
    ("price_eur.alias", "F.lit(None).alias",
     "transform() and OUTPUTS['output'] in tables.py disagree:\n"
     "  column price_eur: transform() gives null and no type, the table has int64: "
     'cast it, .cast("long"), or change tables.py', PLANNED),
    ('"bidder"', '"buyer"',
     "the job cannot continue: [UNRESOLVED_COLUMN.WITH_SUGGESTION] A column, variable, or function "
     "parameter with name `buyer` cannot be resolved. Did you mean one of the following? [`url`, "
     "`bidder`, `extra`, `price`, `auction`]. SQLSTATE: 42703; (transform.py:25)", SPARKS),
    ("price *", "price * *",
     "the job cannot continue: [PARSE_SYNTAX_ERROR] Syntax error at or near '908'. SQLSTATE: 42601 "
     "(line 1, pos 10) (transform.py:25)", SPARKS),
    (_SELECT, "events.count()\n    return events.select(", _ACTION, ACTIONS),
    (_SELECT, "events.collect()\n    return events.select(", _ACTION, ACTIONS),
    (_SELECT, "events.show()\n    return events.select(", _ACTION, ACTIONS),
    (_SELECT, "events.write.parquet('x')\n    return events.select(", _ACTION, ACTIONS),
    (_SELECT, "events.writeStream.format('noop').start()\n    return events.select(",
     *QUERY),
    (_SELECT, "events.writeStream.toTable('x')\n    return events.select(", *QUERY),
    ("events.select", "events.orderBy('price').select",
     "the job cannot continue: Sorting is not supported on streaming DataFrames/Datasets, unless "
     "it is on aggregated DataFrame/Dataset in Complete output mode;", SPARKS),
    ("price_eur.alias", "F.monotonically_increasing_id().alias",
     "the job cannot continue: Expression(s): monotonically_increasing_id() is not supported with "
     "streaming DataFrames/Datasets;", SPARKS),
)
"""Those in transform.py that only Spark finds: `check` and `run` say them, before anything starts.
"""
# fmt: on


@pytest.fixture
def project(tmp_path: Path, cluster: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A job whose commands run in this process, on the minicluster; its modules are forgotten."""
    for name, source in FILES.items():
        text = source.read_text(encoding="utf-8")
        for answer, value in ANSWERS.items():
            text = text.replace(f"{{{{ cookiecutter.{answer} }}}}", value)
        if name == TABLES:  # some of its mistakes need types without a name
            text = "import yt.type_info as ti\n" + text
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "src/bids/__init__.py").touch()
    (tmp_path / "config").mkdir()
    (tmp_path / TOML).write_text(CONFIG, encoding="utf-8")
    # A .pyc holds for a source of the same size and the same second: for the text before an edit.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    monkeypatch.setenv("YT_PROXY", cluster.http)
    for name in ("YT_TOKEN", "YT_SECURE_VAULT_YT_TOKEN"):  # a session of other tests sets both
        monkeypatch.delenv(name, raising=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


def run(command: str) -> int:
    """Return the exit code of a command of the job, imported again."""
    forget()
    return cli.run("bids", import_module("bids.__main__")._job, command.split())


def forget() -> None:
    """Forget the modules of the job, so that they are imported again."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("bids", "sample")]:
        del sys.modules[name]
    invalidate_caches()


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_a_mistake_gets_one_message(
    project: Path,
    cluster: Running,
    mistake: Mistake,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if mistake.command in ("rows", "run"):
        assert run("provision") == 0
        capsys.readouterr()
    file = project / mistake.file
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    assert mistake.old in text
    file.write_text(text.replace(mistake.old, mistake.new, 1) if text else mistake.new)
    for name, value in mistake.environment.items():
        monkeypatch.setenv(name, value)
    code = run(mistake.command)
    said = re.sub(r"\Acluster: .*\n", "", capsys.readouterr().err)
    said = said.replace(cluster.http, "CLUSTER")
    assert failure_in(said.splitlines()) is not None
    assert said.partition("]: ")[2] == f"{mistake.message}\n  -> {mistake.remedy}\n"
    assert code == 1


def test_check_remarks_on_a_backslash_that_spark_removes(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / TRANSFORM
    escaped = file.read_text(encoding="utf-8").replace("'([0-9]+)[?]'", r"'(\\d+)[?]'")
    file.write_text(escaped, encoding="utf-8")
    assert run("provision") == 0
    monkeypatch.setattr(session, "opened", lambda _: sys.exit("Spark is not started"))
    with pytest.raises(SystemExit, match="Spark is not started"):
        run("check")
    said = capsys.readouterr().out
    assert r"remark: REJECT['the URL is of another auction']: Spark takes the backslash in " in said
    assert said.count("remark: REJECT") == 1


def test_a_command_that_does_not_exist_is_wrong_usage(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run("chek")
    assert caught.value.code == 2
    assert "invalid choice: 'chek' (choose from 'provision', 'check'," in capsys.readouterr().err


def test_rewind_names_its_arguments(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("rewind")
    assert caught.value.code == 2
    usage, error = capsys.readouterr().err.split("error: ")
    assert "earliest|latest|rows|to-time|state [QUEUE:PARTITION=ROW|TIME ...]" in " ".join(
        usage.split()
    )
    assert error == "the following arguments are required: earliest|latest|rows|to-time|state\n"


def test_a_changed_guarantee_is_refused_before_spark_starts(
    project: Path,
    cluster: Running,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _edited_everywhere(project, TOML, "mistakes", "changed")
    assert run("provision") == 0
    settings, job = load(Path(TOML)), import_module("bids.job").JOB
    context = JobContext(connect(settings), settings, job, guarantee_of(job))
    (queue,) = settings.queues
    ids = {queue: context.client.get(f"{queue}/@id")}
    marker = {**marker_of(context), "guarantee": "at_least_once"}
    head = Head(1, "process 1 on host", 1, 0, 1, {queue: {}}, ids, marker)
    context.client.insert_rows(settings.ledger, [head_row(head)])
    monkeypatch.setattr(supervisor, "open_session", lambda _: pytest.fail("Spark was started"))
    assert run("run") == 1
    said = capsys.readouterr().err
    assert "the job's guarantee was at_least_once and is transactional now" in said


@pytest.mark.parametrize("command", ["provision", "check", "run", "migrate", "replay-rejected"])
def test_a_key_without_the_transaction_is_refused_before_the_cluster_is_asked(
    project: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Whether the job has run as `transactional` or not: `migrate` does not take it over either."""
    _edited(project, TABLES, '"output": [', '"output": [\n        Column("id", "utf8", key=True),')
    assert run("tables") == 0  # under `transactional` it may have one
    capsys.readouterr()
    _edited(project, JOB, '"transactional"', '"at_least_once"')
    assert run(command) == 1
    assert capsys.readouterr().err == (
        "error [config]: the configuration and the job do not fit:\n"
        "  OUTPUTS['output'] has the key id under at_least_once: an output with a key of your own "
        "needs the transaction: without it a paused driver, or a task of a batch that failed, may "
        "write after later batches, and its older values would replace theirs; "
        'set guarantee="transactional" in job.py, or leave the key '
        f"out\n  -> {CONFIGURED}\n"
    )


def test_a_job_is_looked_at_and_stopped_though_its_tables_were_edited_since(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its owner edits the next version beside it, and stops it only then."""
    _edited_everywhere(project, TOML, "mistakes", "edited")
    assert run("provision") == 0
    _edited(project, TABLES, "QUEUE = [", 'QUEUE = [\n    Column("more", "utf8"),')
    _edited(project, TABLES, '"price_eur"', '"price_usd"')
    assert [run("status"), run("stop")] == [0, 0]
    assert "the job does not run" in capsys.readouterr().out
    assert run("run") == 1
    said = capsys.readouterr().err
    assert (
        "the job cannot start:\nqueue //home/edited/bids: column more: the table lacks it" in said
    )


def test_a_job_is_stopped_though_a_queue_is_not_mounted(
    project: Path, cluster: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may run, and say that the queue cannot be read. What `stop` itself needs is named."""
    _edited_everywhere(project, TOML, "mistakes", "unmounted")
    assert run("stop") == 1
    said = capsys.readouterr().err
    assert "the job cannot be asked to stop:" in said
    assert "ledger //home/unmounted/ledger: missing" in said
    assert run("provision") == 0
    client: Any = connect(load(Path(TOML)))
    client.unmount_table("//home/unmounted/bids", sync=True)
    assert run("stop") == 0
    assert "the job does not run" in capsys.readouterr().out


def test_check_says_that_it_starts_spark(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise JobError("no Spark")

    assert run("provision") == 0
    monkeypatch.setattr(session, "open_session", refuse)
    assert run("check") == 1
    assert (
        capsys.readouterr().out.splitlines()[-1].endswith(": starting Spark with SPYT (10 to 20 s)")
    )


def _edited(project: Path, file: str, old: str, new: str) -> None:
    text = (project / file).read_text(encoding="utf-8")
    assert old in text
    (project / file).write_text(text.replace(old, new, 1), encoding="utf-8")


def _edited_everywhere(project: Path, file: str, old: str, new: str) -> None:
    text = (project / file).read_text(encoding="utf-8")
    (project / file).write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(("old", "new", "message"), WRONG_EXPECTED)
def test_a_mistake_in_expected_gets_one_message(
    project: Path, old: str, new: str, message: str
) -> None:
    _edited(project, EXPECTED, old, new)
    forget()
    job, sample = import_module("bids.job").JOB, import_module("sample").SAMPLE
    said = refusal(lambda: sample.wanted(job, sample.make(5)))
    assert said.removeprefix("expected() in sample/expected.py").lstrip() == message.lstrip()


@pytest.mark.spark
@pytest.mark.parametrize(("old", "new", "message", "remedy"), WRONG_TRANSFORM)
def test_a_mistake_in_transform_gets_one_message(
    project: Path,
    context_of: ContextOf,
    spark: SparkSession,
    old: str,
    new: str,
    message: str,
    remedy: str,
) -> None:
    _edited(project, TRANSFORM, old, new)
    forget()
    context = replace(context_of("at_least_once", rejects=True), job=import_module("bids.job").JOB)
    job_objects.provision(context)
    tablets = Tablets(spark._jvm, context.settings)

    def start() -> None:
        with explained_spark():
            flow = pipeline.flow_of(spark, context)
            pipeline.start(flow, context, tablets, Epoch(1))[0].stop()

    assert refusal(start) == f"{message}\n  -> {remedy}"
    assert spark.streams.active == []
