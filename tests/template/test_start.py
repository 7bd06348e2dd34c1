"""The commands of "Rows of your own" in docs/start.md, on a minicluster."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from yt.wrapper import YtClient

from minicluster.testing import Running
from tests.support.project import ROOT

_SECTION = (ROOT / "docs/start.md").read_text("utf-8").partition("### Rows of your own")[2]
_ROWS, _COMMANDS = (
    re.findall(rf"```{kind}\n(.*?)```", _SECTION, re.DOTALL)[0] for kind in ("text", "sh")
)
_YT = [line for line in _COMMANDS.splitlines() if line.startswith("yt ")]


def _run(command: str, minicluster: Running, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "YT_PROXY": minicluster.http, "YT_TOKEN": "any", "PATH": path}
    return subprocess.run(
        command, shell=True, cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_a_queue_of_a_minicluster_gets_the_rows_of_the_page(
    minicluster: Running, tmp_path: Path
) -> None:
    (tmp_path / "orders.jsonl").write_text(_ROWS, encoding="utf-8")
    for command in _YT:
        done = _run(command, minicluster, tmp_path)
        assert done.returncode == 0, done.stderr
    client = YtClient(minicluster.http, token="any")
    found = client.select_rows("city, total from [//home/shop/orders]")
    assert sorted((row["city"], row["total"]) for row in found) == [
        ("Paris", 7.0),
        ("Казань", 12.5),
    ]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("'<encode_utf8=%false>json'", "json"), "Unicode symbols with codes greater than 255"),
        (("7.0}", "7}"), 'Invalid type: expected "double", actual "int64"'),
    ],
)
def test_the_errors_of_the_page_are_those_that_a_person_sees(
    minicluster: Running, tmp_path: Path, change: tuple[str, str], error: str
) -> None:
    assert error in _SECTION
    (tmp_path / "orders.jsonl").write_text(_ROWS.replace(*change), encoding="utf-8")
    *make, insert = _YT
    for command in make:
        assert _run(command, minicluster, tmp_path).returncode == 0
    assert error in _run(insert.replace(*change), minicluster, tmp_path).stderr
