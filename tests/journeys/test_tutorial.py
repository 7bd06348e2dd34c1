"""The tutorial, played word by word as its reader does; and what of it is seen without Spark."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import Generate
from tests.journeys.make_commands import edit, run
from tests.journeys.page_player import NotSeenError, Terminals, play, steps, verify
from tests.support.jvm import submit_args
from tests.support.project import ROOT, user_config
from tests.template.test_makefile import OFFERED
from tools.overlay import overlay
from ytstream.settings.environment import reach_this_machine

PAGE = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
PORT = "18080"


def test_each_target_that_it_calls_exists() -> None:
    lines = [
        line for step in steps(PAGE) if step.language == "sh" for line in step.text.split("\n")
    ]
    words = [word for line in lines if line.startswith("make ") for word in shlex.split(line)[1:]]
    named = {word for word in words if "=" not in word}
    assert {"adopt", "approve", "test", "demo", "run", "migrate", "submit"} <= named
    assert named <= {*OFFERED["project"]}


@pytest.mark.thorough
@pytest.mark.slow
def test_each_edit_fits_a_repository_that_has_adopted_the_rows(generate: Generate) -> None:
    """Without Spark: the page's answers, its rows, and its edits one after the other."""
    (answers,) = re.findall(r"--extra-context \\\n +'(.*)'", PAGE)
    project = generate(**json.loads(answers))
    (project / ".venv").symlink_to(sys.prefix)
    (rows,) = [step.text for step in steps(PAGE) if "sample_movielens" in step.text]
    subprocess.run(["bash", "-ec", rows], cwd=project, check=True)
    run(project, Path(sys.prefix), "-m", "ratings", "adopt", "--from", "ratings.csv")
    edited = set()
    for step in steps(PAGE):
        for name in step.files:
            edit(project / name, step.changes)
            edited.add(name)
    assert {"src/ratings/transform.py", "src/ratings/tables.py", "config/local.toml"} <= edited
    run(project, Path(sys.prefix), "-m", "ruff", "check", "--no-cache", "src", "sample")
    run(project, Path(sys.prefix), "-m", "ruff", "format", "--no-cache", "--check", "src", "sample")


def test_a_block_is_read_with_its_terminal_and_its_file() -> None:
    page = (
        "In `a/b.py`:\n\n```diff\n-x\n+y\n@@\n same\n+new\n```\n\n"
        'Now:\n\n```sh title="T"\nls\n```\n'
    )
    first, second = steps(page)
    assert (first.files, second.title, second.text) == (("a/b.py",), "T", "ls\n")
    assert first.changes == {"x\n": "y\n", "same\n": "same\nnew\n"}


@pytest.mark.parametrize(
    "printed",
    ["a\n2026-01-02 03:04:05 b 7.25 s\nc d e\n", "a\nx\ny\n2026-01-02 03:04:05 b 1 s\nc e\nf\n"],
)
def test_what_varies_and_what_is_not_shown_may_be_anything(printed: str) -> None:
    verify("a\n...\n2030-10-10 10:10:10 b 3 s\nc ...e\n", printed)


@pytest.mark.parametrize("printed", ["a\nb\n", "b\nx\n", "a\nc\nb\n"])
def test_what_the_page_shows_and_the_terminal_does_not_is_found(printed: str) -> None:
    with pytest.raises(NotSeenError):
        verify("a\nb\nc\n", printed)


SMALL = """
Type:

```sh
mkdir job && cd job
printf 'all:\\n\\t@echo one\\n' > job.mk
export WHO=reader
```

In `job.mk`:

```diff
-\t@echo one
+\t@echo two; false
```

```sh title="Second terminal"
tail -f job.mk
```

```text title="Second terminal"
\t@echo two; false
```

```sh
echo $WHO
make -f job.mk
```

```text
reader
two
make: *** ...
```
"""


def test_a_page_is_played_in_its_terminals(terminals: Terminals) -> None:
    play(SMALL, terminals)
    assert terminals.here.name == "job"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("two\nmake", "one\nmake"), ("make: *** ...\n", ""), ("In `job.mk`", "There")],
)
def test_a_page_that_is_wrong_fails(terminals: Terminals, right: str, wrong: str) -> None:
    assert right in SMALL
    with pytest.raises(AssertionError):
        play(SMALL.replace(right, wrong), terminals)


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    """Terminals of a reader who has git, cruft and a cluster of nobody else."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        **{f"GIT_{who}_{what}": "reader@example.com" for who in ("AUTHOR", "COMMITTER")
           for what in ("NAME", "EMAIL")},
        "COOKIECUTTER_CONFIG": str(user_config(tmp_path)),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "PATH": f"{sys.prefix}/bin{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "PYTHONUNBUFFERED": "1",
        "YTSTREAM_SUBMIT_ARGS": submit_args(),
    }  # fmt: skip
    environment.pop("PYTHONPATH", None)
    reach_this_machine(environment)
    found = Terminals(tmp_path, environment)
    yield found
    found.close()
    for line, seconds in found.seconds:
        print(f"{seconds:6.0f} s  {line}")
    print(f"{sum(seconds for _, seconds in found.seconds):6.0f} s  in all")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.journey
def test_a_reader_sees_what_it_shows(terminals: Terminals) -> None:
    """Installs nothing: this environment's packages are those of `make setup`."""
    port = _free_port()
    first, rest = PAGE.split("```sh\nmake setup\n```\n")
    play(_here(first, {}), terminals)
    project = terminals.here
    overlay(Path(sys.prefix), project / ".venv")
    terminals.run("touch \"$(make -s --eval 'stamp: ; @echo $(STAMP)' stamp)\"\nmake setup")
    # Another minicluster may listen at the usual port.
    edit(
        project / "config" / "local.toml",
        {f'proxy = "127.0.0.1:{PORT}"': f'proxy = "127.0.0.1:{port}"'},
    )
    serve = "-m minicluster --operations"
    play(
        _here(
            rest, {serve: f"{serve} --http-port {port}", f"127.0.0.1:{PORT}": f"127.0.0.1:{port}"}
        ),
        terminals,
    )


def _here(page: str, more: Mapping[str, str]) -> str:
    """Return the page with this repository as the template, and what the machine needs."""
    known = {
        "pipx install cruft ": ": ",
        "https://github.com/ORG/REPO": str(ROOT),
        "--checkout vX.Y.Z ": "",
    }
    for text, other in {**known, **more}.items():
        page = page.replace(text, other)
    return page


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
