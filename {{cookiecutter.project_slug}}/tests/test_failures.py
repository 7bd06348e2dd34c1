"""What Spark throws, as one line."""

from __future__ import annotations

from conftest import Module

TRACE = """Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 times
=== Streaming Query ===
Caused by: org.apache.spark.SparkException: outer
\tat somewhere(Some.scala:1)
Caused by: java.lang.IllegalStateException: the tablet is not mounted
\tat elsewhere(Else.scala:2)
"""


def test_the_innermost_cause_is_the_line(module: Module) -> None:
    cause = module("failures").cause(TRACE)
    assert cause == "java.lang.IllegalStateException: the tablet is not mounted"


def test_a_text_without_causes_is_itself(module: Module) -> None:
    assert module("failures").cause("simply wrong\n  at x") == "simply wrong"
