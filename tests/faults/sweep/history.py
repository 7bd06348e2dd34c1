"""Histories: what went in, what went wrong, what was answered, what was read. JSON lines.

`python -m tests.faults.sweep.history FILE...` compares the rows that were read with those that must
come of the rows sent, and the first line with both and with what the fault explains.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults import protocol
from tests.faults.sweep import oracle, ranges, results
from tests.faults.sweep.jobs import variant_of
from tests.faults.sweep.lab import made_of
from tests.faults.variants import Variant
from tests.support.verdict import HELD, MISSED, NOT_HELD, Verdict
from ytstream.schema.columns import type_name
from ytstream_tools.demo.job_sample import compared

_NAME_CHARACTERS = "-_."


def columns_of(variant: Variant) -> dict[str, list[str]]:
    """Return the columns in which each output is compared: all but the guarantee's position."""
    job = made_of(variant).job
    return {
        name: [column.name.removeprefix("$") for column in compared(job, name)]
        for name in job.outputs
    }


def times_of(variant: Variant) -> set[str]:
    """Return the columns of its queues that hold times."""
    columns = made_of(variant).job.queue_columns
    return {column.name for column in columns if type_name(column.type) == "timestamp"}


def expected_of(variant: Variant, sent: Sequence[oracle.Row]) -> dict[str, Counter[str]]:
    """Return what must come out of the rows ``sent``, by plain Python."""
    sample = made_of(variant).sample
    rejected = sample.others["rejected"]
    return oracle.expected_of(columns_of(variant), sample.expected, rejected, sent)


def lines(
    head: Mapping[str, Any],
    sent: Iterable[oracle.Row],
    requests: Iterable[Mapping[str, Any]],
    found: Mapping[str, Counter[str]],
    ledger: ranges.Ledger | None = None,
) -> Iterable[dict[str, Any]]:
    """Yield a history: what it is of, the rows sent, the requests with faults, the rows read.

    Then, of a job, the batches of its ledger and the ends of its queues.
    """
    yield {"of": dict(head)}
    for row in sent:
        yield {"sent": {name: oracle.plain(value) for name, value in row.items()}}
    for request in requests:
        yield {"fault" if request.get("fault") else "answered": dict(request)}
    for output, rows in found.items():
        for text, count in rows.items():
            yield {"read": output, "row": text, "times": count}
    if ledger is not None:
        for batch in ledger.batches:
            yield {"batch": dict(batch)}
        yield {"ends": dict(ledger.ends)}


def write(folder: Path, name: str, history: Iterable[Mapping[str, Any]]) -> Path:
    """Write a history; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{''.join(c if c.isalnum() or c in _NAME_CHARACTERS else '_' for c in name)}"
    path = path.with_name(f"{path.name}.jsonl")
    text = "".join(f"{json.dumps(one, default=str, ensure_ascii=False)}\n" for one in history)
    path.write_text(text, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Judged:
    """What a history alone says."""

    variant: Variant
    tables: Verdict
    broken: Sequence[str]
    """The promises that were broken, in words."""


def check(path: Path) -> Judged:
    """Return what a history says: its tables, and what the harness wrote in its first line.

    Raises ValueError if the file begins with something else.
    """
    history = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if not history or "of" not in history[0]:
        raise ValueError(f"{path} does not begin with what it is of")
    head = history[0]["of"]
    variant = variant_of(str(head["case"]).partition(":")[0])
    sent = [one["sent"] for one in history if "sent" in one]
    found: dict[str, Counter[str]] = {name: Counter() for name in columns_of(variant)}
    for one in history:
        if "read" in one:
            found[one["read"]][one["row"]] += one["times"]
    tables = oracle.compared(expected_of(variant, sent), found)
    broken = [*_broken(variant, tables, head)]
    if head.get("verdict") != MISSED:
        batches = [one["batch"] for one in history if "batch" in one]
        ends = (one["ends"] for one in history if "ends" in one)
        broken += (
            said for one in ends for said in ranges.of_history(batches, one).problems(len(sent))
        )
    return Judged(variant, tables, broken)


def _broken(variant: Variant, tables: Verdict, head: Mapping[str, Any]) -> Iterator[str]:
    """Yield the promises that are broken. A case that missed its point has made none.

    How many rows may be there twice is in the verdict alone.
    """
    verdict = head.get("verdict")
    if verdict == MISSED:
        return
    if not tables.holds(may_repeat=variant.may_repeat):
        yield f"lost {tables.lost}, repeated {tables.repeated}, wrong {tables.wrong}"
    if verdict in NOT_HELD:
        yield f"the verdict is {verdict}: {head.get('said', '')}".rstrip(": ")
    if verdict == HELD:
        yield from _differences(variant, tables, head)


def _differences(variant: Variant, tables: Verdict, head: Mapping[str, Any]) -> Iterator[str]:
    """Yield why a case that is said to have held has not."""
    counted = {"lost": tables.lost, "repeated": tables.repeated}
    yield from (
        f"the first line has {name} {head[name]}, and the tables {count}"
        for name, count in counted.items()
        if head[name] != count
    )
    if not variant.is_listing:
        may = protocol.explained(results.fault_of(str(head["case"])))
        known = (("starts", may.drivers), ("failures", may.failures))
        yield from (f"{head[name]} {name}, not {most}" for name, most in known if head[name] > most)


def main(names: Sequence[str]) -> int:
    """Print what each history says; return 1 for a broken promise, 2 for a file of another kind."""
    codes = {0}
    for name in names:
        try:
            found = check(Path(name))
        except (OSError, ValueError, KeyError) as error:
            print(f"{name} cannot be read as a history: {error}")
            codes.add(2)
            continue
        codes.add(int(bool(found.broken)))
        tables = found.tables
        print(
            f"lost {tables.lost}, repeated {tables.repeated}, wrong {tables.wrong}, "
            f"{found.variant.guarantee}: {name}"
        )
        print(*(f"  broken: {text}" for text in found.broken), sep="\n")
        print(*(f"  {text}" for text in tables.examples), sep="\n")
    return max(codes)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
