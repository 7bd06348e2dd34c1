"""Names in the JVM, and what the tests' own JVM leaves to others."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

from tests.support.jvm import SHARED
from ytstream.connector.java import Java


class Jvm:
    """Answers as py4j's view of a JVM does, and notes what it was asked for."""

    def __init__(self, asked: list[str], name: str = "") -> None:
        self._asked = asked
        self._name = name

    def __getattr__(self, name: str) -> Jvm:
        whole = f"{self._name}.{name}".removeprefix(".")
        self._asked.append(whole)
        return Jvm(self._asked, whole)


def test_a_name_is_looked_up_once_in_a_jvm_whoever_asks() -> None:
    asked: list[str] = []
    jvm = Jvm(asked)
    for _ in range(2):
        Java(jvm)["java.util.List.of"]
    assert asked == ["java.util.List", "java.util.List.of"]
    Java(Jvm(asked))["java.util.List.of"]
    assert len(asked) == 4


@pytest.mark.slow
@pytest.mark.spark
def test_what_the_shared_session_saves_no_other_process_inherits(spark: SparkSession) -> None:
    assert spark.version
    assert SHARED not in os.environ["YTSTREAM_SUBMIT_ARGS"]
