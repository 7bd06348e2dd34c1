"""What Spark has counted of a batch is read once, as values of Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ytstream.connector.transform_plan import observed_name
from ytstream.job import REJECTED
from ytstream.outputs.batch_metrics import batch_metrics

A, B = "//home/a", "//home/b"


@dataclass
class Execution:
    """An execution of Spark's that has made observations."""

    made: dict[str, tuple[Any, ...]]
    asked: int = 0
    """How often they were asked for."""
    names: list[str] = field(default_factory=list)

    def observedMetrics(self) -> Any:  # noqa: N802
        """Return them, as Scala's map of rows."""
        self.asked += 1
        return SimpleNamespace(get=self._option)

    def _option(self, name: str) -> Any:
        self.names.append(name)
        row = self.made.get(name, ())
        found = SimpleNamespace(length=lambda: len(row), get=lambda index: row[index])
        return SimpleNamespace(isDefined=lambda: name in self.made, get=lambda: found)


def test_each_count_of_a_batch_is_asked_for_once() -> None:
    made = {
        observed_name(A): (3, 6),
        observed_name(B): (0, None),
        observed_name("output"): (2,),
        REJECTED: (1, "", 40),
        "of_the_user": (object(),),
    }
    execution = Execution(made)
    found = batch_metrics(execution, [A, B])
    assert found.read == {observed_name(A): (3, 6), observed_name(B): (0, None)}
    assert (found.written, found.rejected) == ({"output": 2}, (1, "", 40))
    assert execution.asked == 1
    assert sorted(execution.names) == sorted(made.keys() - {"of_the_user"})


def test_a_queue_that_is_read_twice_and_what_spark_has_pruned_are_absent() -> None:
    execution = Execution({observed_name(A): (3, 6), observed_name(B): (9, 9)})
    found = batch_metrics(execution, [A, B], uncounted={B})
    assert found.read == {observed_name(A): (3, 6)}
    assert (found.written, found.rejected) == ({}, None)
