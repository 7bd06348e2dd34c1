"""Findings for people, 80 columns wide, and for programs."""

import json
import textwrap
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ytstream.text_table import counted, table

from . import template_answers
from .reading.inspected_job import InspectedJob
from .rules import RULES, Finding

WIDTH = 80
_LABEL = 9
_NOT_SEEN = "this writeStream could not be followed to its start()"


def text(findings: Sequence[Finding], read: InspectedJob) -> str:
    """Return the findings by rule: the places first, then what holds for all of them."""
    by_rule: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_rule[finding.rule].append(finding)
    parts = [_part(rule, by_rule[rule]) for rule in RULES if rule in by_rule]
    if by_rule:
        rows = [(rule, len(by_rule[rule]), RULES[rule].rows) for rule in RULES if rule in by_rule]
        parts.append(table(("rule", "places", "rows"), rows))
    left = [_wrapped("not read", f"{file}: {why}") for file, why in read.files.unread]
    left += [
        _wrapped("not seen", f"{file}:{line}  {_NOT_SEEN}") for file, line in read.not_followed
    ]
    parts += ["\n".join(left)] if left else []
    if command := template_answers.command(read):
        parts.append(f"a repository with the same queues and processing type:\n\n{command}")
    return "\n\n".join([_head(read), *parts, _verdict(read, len(findings), len(by_rule))])


def _head(read: InspectedJob) -> str:
    others, queries = len(read.texts), _number(len(read.queries), "query", "queries")
    modules = counted(len(read.code.modules), "Python file")
    what = f"read {modules} and {_number(others, 'other', 'others')}: {queries}"
    if read.is_of_ytstream:
        what += "; a job of ytstream, whose runtime sets and verifies what is looked for here"
    return textwrap.fill(what, WIDTH)


def _verdict(read: InspectedJob, places: int, rules: int) -> str:
    if places:
        return f"{counted(places, 'finding')} of {counted(rules, 'rule')}"
    if read.is_known:
        return "nothing was found"
    what = "not all of the job was understood, so that finding nothing does not say that it is well"
    return textwrap.fill(what, WIDTH)


def _number(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _part(name: str, findings: Sequence[Finding]) -> str:
    rule = RULES[name]
    head = name if rule.rows == "-" else f"{name}: rows are {rule.rows}"
    lines = [head, "-" * len(head)]
    for finding in findings:
        lines.append(_wrapped("at", f"{finding.place}  {finding.what}"))
    lines += [
        _wrapped("why", rule.consequence),
        _wrapped("source", f"{rule.source} [{rule.known}]"),
        _wrapped("instead", rule.instead),
    ]
    return "\n".join(lines)


def _wrapped(label: str, content: str) -> str:
    indent = " " * _LABEL
    first = label.ljust(_LABEL)
    return textwrap.fill(
        content, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    )


def document(path: str, findings: Sequence[Finding], read: InspectedJob) -> str:
    """Return the findings as JSON, each complete by itself."""
    found: list[dict[str, Any]] = []
    for finding in findings:
        rule = RULES[finding.rule]
        found.append(
            {
                "rule": rule.name,
                "rows": [] if rule.rows == "-" else rule.rows.split(", "),
                "file": finding.file,
                "line": finding.line or None,
                "what": finding.what,
                "consequence": rule.consequence,
                "source": rule.source,
                "known": rule.known,
                "instead": rule.instead,
            }
        )
    whole = {
        "path": path,
        "queries": len(read.queries),
        "answers": template_answers.answers(read),
        "findings": found,
        "unread": [{"file": file, "why": why} for file, why in read.files.unread],
        "not_followed": [{"file": file, "line": line} for file, line in read.not_followed],
    }
    return json.dumps(whole, indent=2, ensure_ascii=False)
