"""The JVM that is found on this machine: too old, absent, or one that does not start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.helpers import refusal
from ytstream.connector.java_home import require_java

_HINT = "install Java 17 or 21 (`make java` says how on each system) or set JAVA_HOME"


def _refused(home: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> str:
    (home / "bin").mkdir()
    (home / "bin/java").write_text(f"#!/bin/sh\n{script}\n")
    (home / "bin/java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    return refusal(require_java).replace(str(home), "HOME")


@pytest.mark.parametrize(
    ("name", "option", "said"),
    [
        ("JAVA_TOOL_OPTIONS", "-Xnonsense", "\n  Unrecognized option: -Xnonsense\n"),
        ("JAVA_TOOL_OPTIONS", "-XX:+UseNothing", "\n  Unrecognized VM option 'UseNothing'\n"),
        ("_JAVA_OPTIONS", "-Xmx1k", "\n  Too small maximum heap\n"),  # the JVM prints it to stdout
        ("JDK_JAVA_OPTIONS", "-Xnonsense", "\n  Unrecognized option: -Xnonsense\n"),
    ],
)
def test_a_jvm_that_refuses_its_options_says_so_itself(
    monkeypatch: pytest.MonkeyPatch, name: str, option: str, said: str
) -> None:
    monkeypatch.setenv(name, f"-Dpassword=secret {option}")
    text = refusal(require_java)
    assert "java does not start, it ends with code 1\n" in text
    assert said in text
    assert "secret" not in text
    assert text.endswith(f"\n  -> correct {name} in the environment")


def test_a_jvm_that_reads_its_options_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Da=b")
    require_java()


def test_another_java_and_one_that_says_nothing_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (old := tmp_path / "old").mkdir()
    (mute := tmp_path / "mute").mkdir()
    assert _refused(old, monkeypatch, """echo 'openjdk version "11.0.2"' >&2""") == (
        f"HOME/bin/java is Java 11; Spark with SPYT runs on 17 or 21\n  -> {_HINT}"
    )
    assert _refused(mute, monkeypatch, "exit 9") == (
        f"HOME/bin/java does not start, it ends with code 9\n  -> {_HINT}"
    )
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert "none/bin/java cannot be run: No such file or directory" in refusal(require_java)
