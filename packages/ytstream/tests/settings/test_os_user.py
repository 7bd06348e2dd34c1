"""A user id that the system has no name for, and a folder that allows no programs."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.helpers import refusal
from ytstream.settings import os_user
from ytstream.spark import jvm_process, session


def _unknown(_: int) -> pwd.struct_passwd:
    raise KeyError("uid not found")


def test_a_user_without_a_name_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pwd, "getpwuid", _unknown)
    assert os_user.missing_name() == f"uid{os.getuid()}"


@pytest.mark.parametrize("is_usable", [True, False])
def test_java_gets_a_home_that_can_be_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_usable: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path if is_usable else tmp_path / "nothing"))
    options = os_user.java_options("uid12345").split()
    assert options[0] == "-Duser.name=uid12345"
    home = Path(options[1].removeprefix("-Duser.home="))
    assert os.access(home, os.W_OK)
    assert home.samefile(tmp_path) == is_usable


def _jvm(folder: Path) -> Any:
    system = SimpleNamespace(getProperty={"java.io.tmpdir": str(folder)}.__getitem__)
    return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))


@pytest.mark.skipif(not hasattr(os, "ST_NOEXEC"), reason="the system does not tell")
def test_a_folder_without_programs_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jvm_process.verify_native_libraries(_jvm(tmp_path))
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    said = refusal(lambda: jvm_process.verify_native_libraries(_jvm(tmp_path)))
    assert f"{tmp_path}, is mounted noexec" in said
    assert "JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=FOLDER" in said


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    said = refusal(lambda: jvm_process.verify_native_libraries(_jvm(tmp_path / "nothing")))
    assert "cannot be used: No such file or directory" in said


@pytest.mark.parametrize("name", [None, "uid12345"])
def test_both_are_seen_to_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str | None
) -> None:
    """A user with a name logs in as Hadoop does it."""
    names: list[str] = []
    users = SimpleNamespace(createRemoteUser=str, setLoginUser=names.append)
    security = SimpleNamespace(security=SimpleNamespace(UserGroupInformation=users))
    jvm = _jvm(tmp_path)
    jvm.org = SimpleNamespace(apache=SimpleNamespace(hadoop=security))
    monkeypatch.setattr(jvm_process, "started", lambda: jvm)
    monkeypatch.setattr(os_user, "missing_name", lambda: name)
    session._prepared_jvm()
    assert names == ([name] if name else [])
    monkeypatch.setattr(jvm_process, "started", lambda: _jvm(tmp_path / "nothing"))
    assert "cannot be used" in refusal(session._prepared_jvm)
