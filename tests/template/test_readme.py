"""README and docs/operations.md of a generated project: they name what exists, and it does that."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from minicluster import testing
from tests.conftest import Generate
from tests.support.examples import example, offered, settings_of
from tests.support.jvm import submit_args
from tests.support.pages import dead_links, headings
from tests.support.project import ROOT, TOOLS, YTSTREAM, Variant, generate, variant_answers
from tests.support.waiting import eventually
from ytstream import Column, Hourly, cli
from ytstream.commands.registry import registry
from ytstream.errors import FullAccountError, OutageError
from ytstream.log import Event
from ytstream.provisioning.job_objects import LOCAL_QUEUE_TABLETS
from ytstream.settings.job_settings import load
from ytstream_tools.demo.crash_scenario import BATCHES
from ytstream_tools.demo.demo_text import may_repeat
from ytstream_tools.status import alert_rules

README, OPERATIONS = "README.md", "docs/operations.md"
PAGES = (README, OPERATIONS)
THE_PROCESSING = {
    "map": "The processing: each row separately",
    "window": "The processing: windows",
    "join": "The processing: a join with a reference table",
    "deduplicate": "The processing: deduplication",
    "aggregate": "The processing: running totals",
    "merge": "The processing: rows that change",
    "sessions": "The processing: sessions",
}
THE_GUARANTEE = {
    "transactional": "The guarantee: exactly once, by transaction",
    "idempotent": "The guarantee: exactly once, by key",
    "at_least_once": "The guarantee: at least once",
}
DEMO_ROWS = 20_000
"""As many sample rows as the demo puts into each queue."""
LOCAL = "127.0.0.1:18080"
PATIENCE_SECONDS = 300.0
"""Of a start of Spark, and of the batches until the closed sessions are written."""
TIMED = ("window", "deduplicate", "sessions")
"""They have a watermark."""


def text_of(project: Path, page: str = README) -> str:
    return (project / page).read_text(encoding="utf-8")


def both(project: Path) -> str:
    return "\n".join(text_of(project, page) for page in PAGES)


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of ``language``."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_it_is_one_with_many_queues_too(generate: Generate) -> None:
    paths = [f"//home/team/queue-{number}" for number in range(2_000)]
    text = text_of(generate(processing="join", queue_paths=" ".join(paths)))
    assert "| reads | 2000 queues, named in `config/production.toml` |" in text
    assert paths[-1] not in text


def test_its_sections_are_the_way_of_a_newcomer(project: Path) -> None:
    assert headings(project / README)[1:] == [
        "Run the demo",
        "Make it yours",
        "Run it locally",
        "Run it on a cluster",
        "Where things run",
        "Files",
    ]


def test_the_operations_page_has_nothing_of_what_was_not_chosen(project: Path) -> None:
    found = headings(project / OPERATIONS)
    facts = dict(re.findall(r"^\| (guarantee|processing) \| `(\w+)` \|$", text_of(project), re.M))
    is_stateful = facts["processing"] not in ("map", "join", "aggregate", "merge")
    assert [heading for heading in found if heading.startswith("The ")] == [
        THE_PROCESSING[facts["processing"]],
        "The outputs",
        THE_GUARANTEE[facts["guarantee"]],
        "The ledger",
    ]
    assert ("State" in found) == is_stateful
    page = text_of(project, OPERATIONS)
    assert ("watermark" in page) == is_stateful
    assert ("**pandas and pyarrow**" in page) == (facts["processing"] == "sessions")
    assert ("reference table" in page) == (facts["processing"] == "join")
    assert ("make replay-rejected" in page) != is_stateful
    assert ("is too large for its tables" in page) == (facts["guarantee"] == "transactional")


def test_links_and_sections_that_pages_name_exist(project: Path) -> None:
    for page in PAGES:
        assert [*dead_links(project / page)] == []
    found = headings(project / OPERATIONS)
    named = set(
        re.findall(r'"([A-Z][a-z]+(?: [a-z]+)*)"', both(project).partition("## Settings")[0])
    )
    config = (project / "config/production.toml").read_text(encoding="utf-8")
    named |= {*re.findall(r'"([^"]+)" in docs/operations.md', config)}
    changed = "Change the guarantee or the queues"
    assert {"Which job owns an output", "Rejected rows", changed} <= named
    for name in named:
        assert any(heading.startswith(name) for heading in found), name


def test_the_runtimes_messages_name_sections_of_the_operations_page(project: Path) -> None:
    said = "\n".join(_texts())
    named = set(re.findall(r'docs/operations.md[^"\n]*"([^"]+)"', said))
    assert named == {"Rejected rows", "The processing", "A damaged state"}
    processing = dict(re.findall(r"^\| (processing) \| `(\w+)` \|$", text_of(project), re.M))
    if not example("transactional", offered(processing["processing"])).job.kind.is_stateful:
        named.remove("A damaged state")  # a job without state never names it
    for name in named:
        assert any(heading.startswith(name) for heading in headings(project / OPERATIONS)), name
    assert "README" not in said


def test_every_target_they_name_exists(project: Path) -> None:
    named = {
        word
        for words in re.findall(
            r"(?:`|^)make((?: +[a-z-]+(?![\w=]))+)", both(project), re.MULTILINE
        )
        for word in words.split()
    }
    assert {"lint", "test", "demo", "rows", "status", "submit", "rewind", "migrate"} <= named
    makefile = (project / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    assert named <= {*targets}
    variables = set(re.findall(r"`make [a-z-]+ ([A-Z]+)=", both(project)))
    assert variables == {"TO", "COUNT", "REPLACE", "CONFIG", "FROM", "PERIOD"}
    assert all(re.search(rf"^#   {name}=", makefile, re.MULTILINE) for name in variables)


def test_its_configuration_of_a_laptop_is_valid(project: Path) -> None:
    (text,) = blocks(project / OPERATIONS, "toml")
    (file := project / "config/laptop.toml").write_text(text)
    try:
        found = load(file, {})
    finally:
        file.unlink()
    assert found.queues == load(project / "config/local.toml", {}).queues
    assert found.submit.driver_memory == "768m"


def test_every_file_they_name_exists(project: Path) -> None:
    # Pages of the runtime are in the template.
    pages = {"docs/runtime/ledger.md", "docs/runtime/snapshots.md"}
    assert all((ROOT / "docs/runtime" / Path(name).name).is_file() for name in pages)
    names = ("archives", "cluster", "deploy", "lookup", "upgrading")
    of_the_template = {f"docs/{name}.md" for name in names}
    assert all((ROOT / name).is_file() for name in of_the_template)
    pages |= of_the_template
    pages |= {"config/staging.toml", "config/laptop.toml"}  # an owner may add them
    named = set(re.findall(r"`([\w./*-]+\.(?:py|toml|md))`", both(project))) - pages
    assert {"sample/rows.py", "config/production.toml", "tests/test_job.py"} <= named
    for name in named:
        assert [*project.glob(name), *project.glob(f"s*/**/{name}")], name


def test_every_command_they_name_exists(project: Path) -> None:
    package = project.name.replace("-", "_")
    named = set(re.findall(rf"python -m {package} (\w[\w-]+)", both(project)))
    assert named == {"submit", "status", "alerts", "rehearse", "capture", "complete-until"}
    assert named <= {*registry().commands}


def test_the_messages_of_the_runbook_are_those_of_the_runtime(project: Path) -> None:
    rows = text_of(project, OPERATIONS).partition("## Messages")[2]
    rows = rows.partition("\n## ")[0]
    first_cells = re.findall(r"^\| (.*?) \|", rows, re.MULTILINE)
    assert first_cells.count("you see") == 3
    quoted = {part for cell in first_cells for part in re.findall("`([^`]*)`", cell) if " " in part}
    quoted -= {word for word in quoted if word.startswith("make ")}
    assert len(quoted) > 30
    for message in quoted:
        assert _is_said(message), message


@cache
def _is_said(message: str) -> bool:
    # The log's line is made of two texts.
    waits = [f"waiting for {error.waits_for} for" for error in (OutageError, FullAccountError)]
    said = "\n".join([*_texts(), *waits])
    # What is put before every line, and levels of the log, are said elsewhere.
    own = re.sub(r"^(error|watch|recovery|\.\.\.): ", "", message)
    parts = [re.escape(part) for part in own.split("...")]
    return re.search(r"[^\n]*".join(parts), said) is not None


def test_each_alert_has_its_entry_and_each_entry_its_alert(project: Path) -> None:
    """The address in an alert leads to a heading of the page, with all that an entry has."""
    facts = dict(re.findall(r"^\| (guarantee|processing) \| `(\w+)` \|$", text_of(project), re.M))
    job = example(facts["guarantee"], offered(facts["processing"]), rejects=True).job
    # The page is for jobs with lookups, archives and totals as well.
    job = replace(job, references={"auctions": []}, static={"output": Hourly("date_time")})
    settings, jobs = settings_of(job, "//home/job"), [job]
    if job.processing in TIMED:
        jobs, settings = [replace(job, late="reject")], replace(settings, late_limit=0.1)
    if facts["guarantee"] == "transactional":
        sums = [Column("auction", "int64", key=True), Column("bids", "int64", aggregate="sum")]
        jobs.append(replace(job, outputs={**job.outputs, "sums": sums}))
    texts = [alert_rules.text(one, settings, Path("config/production.toml")) for one in jobs]
    groups = [group for text in texts for group in yaml.safe_load(text)["groups"]]
    addresses = {rule["annotations"]["runbook_url"] for group in groups for rule in group["rules"]}
    section = text_of(project, OPERATIONS).partition("\n## Alerts\n")[2].partition("\n## ")[0]
    entries = section.split("\n### ")[1:]
    found = {entry.partition("\n")[0] for entry in entries}
    assert addresses == {f"{OPERATIONS}#{alert_rules.anchor(heading)}" for heading in found}
    for entry in entries:
        parts = ("**Meaning.**", "**Impact.**", "**First command.** `make ", "**Escalate**")
        assert all(part in entry for part in parts), entry
        assert "| likely cause | you see | do |" in entry


def test_the_printed_lines_are_those_of_the_runtime(project: Path) -> None:
    """The log, and what commands print: each line has the words of a text of the runtime.

    Lines of batches are put together of many: test_a_newcomer... compares them with a real log.
    """
    lines = [
        re.sub(r"^[\d-]+ [\d:]+ [A-Z]+ (recovery: )?", "", line)
        for page in PAGES
        for block in blocks(project / page, "text")
        for line in block.splitlines()
        if not line.startswith("RESULT ")
    ]
    # Cells of tables are data.
    table = re.compile(r"$|queue |-+ |//\S+( +\d+)+$|\.\.\.$|batch ")
    said = [line for line in lines if not table.match(line)]
    assert len(said) >= 4
    for line in said:
        assert any(pattern.match(line) for pattern in _patterns()), line


@cache
def _patterns() -> list[re.Pattern[str]]:
    """Return an expression for each text of the runtime that is long enough to be told by."""
    texts = [text.split("\0") for text in _texts()]
    long = [parts for parts in texts if len("".join(parts)) >= 12 and len(max(parts, key=len)) >= 8]
    return [re.compile(".*".join(map(re.escape, parts))) for parts in long]


@cache
def _texts() -> list[str]:
    """Return the texts in the runtime's code, a line each; a value in one is left out."""
    return [*_read(YTSTREAM), *_read(TOOLS)]


def _read(folder: Path) -> Iterator[str]:
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            values = node.values if isinstance(node, ast.JoinedStr) else [node]
            parts = [
                str(value.value) if isinstance(value, ast.Constant) else ""
                for value in values
                if not isinstance(value, ast.Constant) or isinstance(value.value, str)
            ]
            if any(parts):
                if event := _event(values[0]):
                    parts[:2] = [event + "".join(parts[1:2])]
                yield "\0".join(parts).replace("\n", " ")


def _event(first: ast.AST) -> str:
    """Return the words of the log's Event that a text begins with, if it does."""
    match first:
        case ast.FormattedValue(ast.Attribute(ast.Name("Event"), name)):
            return Event[name].value
    return ""


def test_the_numbers_of_rows_are_those_that_tests_and_demo_take(project: Path) -> None:
    (shown,) = re.findall(
        r"`make test` takes up to ([\d,]+) rows for each queue, `make demo` ([\d,]+), "
        r"`make rows` ([\d,]+) unless",
        text_of(project, OPERATIONS),
    )
    sources = "".join(path.read_text() for path in (project / "tests").glob("test_*.py"))
    tested = max(int(n) for n in re.findall(r"(?:\.send|SAMPLE\.make)\(([\d_]+)", sources))
    full = tomllib.loads((project / "config/local.toml").read_text())["max_rows_per_partition"]
    played = BATCHES * full * LOCAL_QUEUE_TABLETS
    filled = cli.parser("job").parse_args(["rows"]).count
    assert [int(number.replace(",", "")) for number in shown] == [tested, played, filled]
    assert played == DEMO_ROWS


@pytest.mark.slow
def test_the_rows_that_are_counted_are_those_of_the_sample(project: Path) -> None:
    """After `make rows`, and after a row of the reader's own whose event time is now."""
    text = text_of(project)
    facts = dict(re.findall(r"^\| (guarantee|processing) \| `(\w+)` \|$", text, re.MULTILINE))
    (own,) = [script for script in blocks(project / README, "sh") if "insert-rows" in script]
    queues = text.count("INFO recovery: first read of ")
    found = example(facts["guarantee"], offered(facts["processing"]), queues, rejects=True)
    sent = [row for queue in range(queues) for row in found.sample.make(1_000, queue + 1)]
    (more,) = found.sample.make(1, 9, time.time_ns() // 1_000)
    before = found.sample.wanted(found.job, sent).total()
    after = found.sample.wanted(found.job, [*sent, more]).total()
    assert f'It prints `{{"rows":{after}}}`.' in text
    told = {0: "there was none:", after: "as many before:"}.get(before, f"there were {before}:")
    assert told in text
    assert own.count("insert-rows") == (2 if facts["processing"] == "deduplicate" else 1)
    # No column of the example's: it holds for the owner's own sample.
    assert not any(re.search(rf"\b{column.name}\b", own) for column in found.job.queue_columns)


@pytest.mark.slow
def test_the_figures_of_its_demo_are_those_of_the_sample(project: Path) -> None:
    text = (project / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^RESULT (.*)$", text, re.MULTILINE)
    shown = dict(word.split("=") for word in line.split())
    guarantee, processing, queues = shown["guarantee"], shown["processing"], int(shown["queues"])
    assert f"| guarantee | `{guarantee}` |\n| processing | `{processing}` |\n" in text
    assert queues == text.count("INFO recovery: first read of ")
    found = example(guarantee, offered(processing), queues, rejects=True)
    sent = [row for queue in range(queues) for row in found.sample.make(DEMO_ROWS, queue + 1)]
    sent += found.sample.closing(found.job, sent)
    repeated = int(shown["duplicated"])
    assert (repeated > 0) == may_repeat(found.job)
    assert int(shown["rows_in"]) == len(sent)
    assert int(shown["rows_out"]) == found.sample.wanted(found.job, sent).total() + repeated
    assert int(shown["rejected"]) == found.sample.wanted(found.job, sent, "rejected").total()
    assert (shown["lost"], shown["kills"], shown["restarts"]) == ("0", "1", "1")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "variant",
    [
        ("at_least_once", "window", "multi"),
        ("transactional", "join", "multi"),
        *(
            pytest.param(variant, marks=pytest.mark.journey)
            for variant in (
                ("transactional", "map", "single"),
                ("at_least_once", "deduplicate", "single"),
                ("transactional", "aggregate", "single"),
                ("at_least_once", "sessions", "multi"),
            )
        ),
    ],
    ids="-".join,
)
@pytest.mark.slow
def test_its_commands_fill_the_queue_of_a_minicluster(tmp_path: Path, variant: Variant) -> None:
    project = generate(tmp_path, **variant_answers(variant))
    scripts = blocks(project / "README.md", "sh")
    (words,) = re.findall(r"^make (provision rows status)$", "".join(scripts), re.MULTILINE)
    (own,) = [script for script in scripts if "insert-rows" in script]
    with testing.start() as cluster:

        def said(*command: str) -> str:
            done = subprocess.run(
                command,
                cwd=project,
                env={
                    **os.environ,
                    "PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",
                    "PYTHONPATH": os.pathsep.join([str(project / "src"), str(project)]),
                    "YT_PROXY": cluster.http,
                },
                capture_output=True,
                text=True,
                check=True,
                timeout=60,
            )
            return done.stdout

        package = project.name.replace("-", "_")
        shown = [said(sys.executable, "-m", package, word) for word in words.split()]
        # How long the rows have waited is the clock's affair.
        both = shown[-1].replace(cluster.http, LOCAL), (project / "README.md").read_text()
        clock = re.compile(r" +\d+( s)?$", re.MULTILINE)
        printed, page = (clock.sub("N", text) for text in both)
        assert f"```text\n{printed}```\n" in page

        lines = own.replace(LOCAL, cluster.http).replace(". .venv/bin/activate", "set -e")
        assert LOCAL in own
        said("sh", "-c", re.sub(r"sleep \d+.*", "", lines))
        assert len((project / "row.yson").read_text().splitlines()) > 5  # to be edited
        queue = variant_answers(variant)["queue_paths"].split()[0]
        query = f'event_id from [{queue}] where is_prefix("9-", event_id)'
        found = said("yt", "--proxy", cluster.http, "select-rows", query, "--format", "json")
        assert len(found.splitlines()) == own.count("insert-rows")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_newcomer_watches_the_sessions_of_the_sample(tmp_path: Path) -> None:
    """The commands of "Watch it run", one after the other, with the answers that are printed."""
    project = generate(tmp_path, processing="sessions")
    (project / ".venv").symlink_to(sys.prefix)
    readme = project / "README.md"
    (own,) = [script for script in blocks(readme, "sh") if "insert-rows" in script]
    send, select = re.split(r"^sleep .*\n", own, flags=re.MULTILINE)
    activate = own.splitlines()[0]
    with testing.start() as cluster, (project / "run.log").open("w") as log:
        # Given as another one, the shared environment does not get the project installed.
        make = ["make", f"VENV={sys.prefix}"]
        process: dict[str, Any] = {
            "cwd": project,
            "env": {**os.environ, "YT_PROXY": cluster.http, "YTSTREAM_SUBMIT_ARGS": submit_args()},
            "text": True,
        }

        def said(*command: str) -> str:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_SECONDS, **process
            )
            return str(done.stdout).replace(cluster.http, LOCAL)

        def script(lines: str) -> str:
            return said("sh", "-c", lines.replace(LOCAL, cluster.http))

        said(*make, "provision", "rows", "status")
        assert "transform() ok: the columns of OUTPUTS" in said(*make, "check")
        with subprocess.Popen(
            [*make, "run"], stdout=log, stderr=log, start_new_session=True, **process
        ) as job:
            try:
                told = project / "run.log"
                eventually(lambda: " batch 1-0: read 1,000 " in told.read_text(), PATIENCE_SECONDS)
                assert "lag: 0 rows" in said(*make, "status")
                script(send)
                (printed,) = re.findall("It prints `(.*)`", readme.read_text())
                wanted = f"{printed}\n"
                eventually(lambda: script(f"{activate}\n{select}") == wanted, PATIENCE_SECONDS)
                shown = {_masked(line) for line in _log_lines(readme.read_text())}
                assert shown <= {_masked(line) for line in (project / "run.log").open()}
                assert "the job has ended: stopped" in said(*make, "stop")
                assert job.wait(PATIENCE_SECONDS) == 0
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)


def _log_lines(text: str) -> list[str]:
    return re.findall(r"^\d{4}-\d\d-\d\d .*\n", text, re.MULTILINE)


def _masked(line: str) -> str:
    """Return a line of the log without its time, and without how long something took."""
    return re.sub(r"[\d.]+ s$", "... s", line.rstrip().split(" ", 2)[-1])
