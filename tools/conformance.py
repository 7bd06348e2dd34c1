"""The conformance suite, asked of a cluster: cases with another answer, and that answer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tools.example import ROOT
from ytstream.settings import environment as variables

SUITE = "packages/minicluster/tests/conformance"
ANSWER_LINES = 12
"""Lines of an answer that are kept: the assertion, and what explains it."""
SHOWN = 2_000
"""What pytest says of itself, when it could not run."""

_VOLATILE = (
    (re.compile(r"\b[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"(?<=:)\d{4,5}\b"), "<port>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z?"), "<time>"),
    (re.compile(r"\b\d{9,}\b"), "<number>"),
    (re.compile(r" at 0x[0-9a-f]+"), ""),
)
"""What differs from run to run, in this order: ids, folders and long numbers."""


@dataclass(frozen=True)
class Answers:
    """What a cluster has answered to the suite."""

    agree: int = 0
    skipped: int = 0
    differing: Mapping[str, str] = field(default_factory=dict)
    """A case -> how its answer differs from the expected one."""
    problem: str = ""
    """Why the suite could not be asked; "" if it was."""


def asked(proxy: str, token: str, *cases: str) -> Answers:
    """Ask the cluster, "" for a minicluster; without ``cases``, FILE.py::CASE, ask all of them."""
    mine = variables.kept(os.environ, variables.CLUSTER)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
             f"--junitxml={report}", *(f"{SUITE}/{case}" for case in cases or ("",))],
            cwd=ROOT,
            env={**mine, "YT_CONFORMANCE_PROXY": proxy, **({"YT_TOKEN": token} if token else {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )  # fmt: skip
        if done.returncode not in (0, 1) or not report.is_file():
            return Answers(problem=done.stdout.strip()[-SHOWN:] or f"exit code {done.returncode}")
        return answers_in(report.read_text(encoding="utf-8"))


def of_minicluster(cases: Sequence[str]) -> Mapping[str, str]:
    """Ask a minicluster these cases; return those that get another answer from it as well."""
    if not cases:
        return {}
    return asked("", "", *cases).differing


def answers_in(report: str) -> Answers:
    """Read pytest's report, JUnit XML of our own making."""
    differing: dict[str, str] = {}
    agree = skipped = 0
    for case in ElementTree.fromstring(report).iter("testcase"):
        wrong = case.find("failure")
        wrong = case.find("error") if wrong is None else wrong
        if wrong is not None:
            differing.setdefault(_name(case), plain(_said(wrong)))
        elif case.find("skipped") is not None:
            skipped += 1
        else:
            agree += 1
    return Answers(agree, skipped, differing)


def _said(wrong: ElementTree.Element) -> str:
    """Return the lines of a failure that pytest marks with E; the attribute has not all of them."""
    lines = (wrong.text or "").splitlines()
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return "\n".join(marked) or wrong.get("message") or ""


def plain(answer: str) -> str:
    """Return the first lines of an answer, without what differs from run to run."""
    # The client goes on with each request and answer in full: ids, ports, times.
    answer = answer.partition("***** Details")[0].strip().removesuffix("\\n\\n")
    text = "\n".join(answer.splitlines()[:ANSWER_LINES])
    for pattern, placeholder in _VOLATILE:
        text = pattern.sub(placeholder, text)
    return text


def _name(case: ElementTree.Element) -> str:
    module = (case.get("classname") or "").rpartition(".")[2]
    return f"{module}.py::{case.get('name')}"
