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


def test_a_python_function_is_quoted_by_its_last_line(module: Module) -> None:
    trace = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Task failed: PythonException: "
        'Traceback (most recent call last):\n  File "x.py", line 1, in f\n'
        "ZeroDivisionError: division by zero\n\n\tat org.apache.spark.Some(Some.scala:1)"
    )
    assert module("failures").cause(trace) == "ZeroDivisionError: division by zero"
