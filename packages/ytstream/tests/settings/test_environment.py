"""What the shell's variables may change of a run on this machine."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from pathlib import Path

import pytest
from yt.packages import requests

from ytstream.settings import environment
from ytstream.settings.job_settings import load, token
from ytstream.settings.plain_path import plain

SHELL = {
    "YT_PROXY": "cluster.example.com",
    "YT_TOKEN": "secret",
    "YT_SECURE_VAULT_YT_TOKEN": "secret",
    "YT_CONFIG_PATCHES": "{}",
    "PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell",
    "PYSPARK_DRIVER_PYTHON": "jupyter",
    "SPARK_HOME": "/opt/spark",
    "SPARK_CONF_DIR": "/etc/spark",
    "SPARK_ENV_LOADED": "1",
    "SPARK_REMOTE": "sc://cluster.example.com",
    "SPYT_CLASSPATH": "/opt/spyt/*",
    "HADOOP_CONF_DIR": "/etc/hadoop",
    "YARN_CONF_DIR": "/etc/hadoop",
    "MASTER": "yarn",
}
"""What a shell of someone who works with clusters has."""
OTHER = {"HOME": "/home/me", "SPARK_LOCAL_DIRS": "/scratch", "YTSTREAM_SUBMIT_ARGS": "--x"}
LOCAL = {"LANG": "C.UTF-8"}


def test_a_run_on_a_minicluster_sees_no_cluster() -> None:
    here = {**SHELL, **OTHER}
    environment.leave_clusters(here)
    assert not [name for name in here if name.startswith("YT_")]
    assert here.items() >= OTHER.items()
    assert here["SPARK_HOME"] == SHELL["SPARK_HOME"]


def test_a_spark_on_this_machine_has_our_settings_alone() -> None:
    here = {**SHELL, **LOCAL, "SPARK_LOCAL_DIRS": "/scratch"}
    environment.prepare_spark(here, {"SPARK_HOME": "ours"}, "--master local[2] pyspark-shell")
    of_spark = re.compile("(PY)?SPARK_|SPYT_|HADOOP_|YARN_|MASTER")
    assert {name: value for name, value in here.items() if of_spark.match(name)} == {
        "SPARK_HOME": "ours",
        "SPARK_LOCAL_DIRS": "/scratch",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell",
    }
    assert here["YT_PROXY"] == SHELL["YT_PROXY"]
    assert "LC_ALL" not in here


def test_tests_may_give_spark_other_options() -> None:
    here = {"YTSTREAM_SUBMIT_ARGS": "--master local[1] pyspark-shell"}
    environment.prepare_spark(here, {}, "--master local[2] pyspark-shell")
    assert here["PYSPARK_SUBMIT_ARGS"] == "--master local[1] pyspark-shell"


@pytest.mark.parametrize(
    "locale",
    [
        {},
        {"LANG": "C"},
        {"LANG": "ru_RU.UTF-8", "LC_ALL": "POSIX"},
        {"LANG": "C.UTF-8", "LC_ALL": "xx_XX.UTF-8"},  # ssh has passed it on
        {"LC_CTYPE": "ru_RU.KOI8-R"},
    ],
)
def test_java_reads_every_letter_whatever_the_locale(locale: dict[str, str]) -> None:
    here = dict(locale)
    environment.prepare_spark(here, {}, "")
    assert here["LC_ALL"] == "C.UTF-8"


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"])
@pytest.mark.parametrize("given", [{}, {"NO_PROXY": "intra"}, {"no_proxy": "intra"}])
def test_this_machine_is_reached_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch, name: str, given: dict[str, str]
) -> None:
    for variable in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in {name: "http://127.0.0.1:9", **given}.items():
        monkeypatch.setenv(variable, value)

    def has_proxy(address: str) -> bool:
        with requests.Session() as session:
            settings = session.merge_environment_settings(
                f"http://{address}/", {}, None, None, None
            )
        return bool(settings["proxies"])

    here = ("127.0.0.1:80", "localhost:80", socket.gethostname())
    assert all(map(has_proxy, here))
    monkeypatch.setenv("NO_PROXY", os.environ.get("NO_PROXY", ""))
    monkeypatch.setenv("no_proxy", os.environ.get("no_proxy", ""))
    environment.reach_this_machine()
    environment.reach_this_machine()
    assert not any(map(has_proxy, here))
    assert has_proxy("cluster.example.com")
    assert not given or not has_proxy("intra")
    assert os.environ["NO_PROXY"].count("localhost") == 1


@pytest.mark.parametrize("star", ["*", "*,.local", "*,", " * ", "intra,*"])
@pytest.mark.parametrize("name", ["NO_PROXY", "no_proxy"])
def test_a_star_in_no_proxy_is_for_every_address(
    monkeypatch: pytest.MonkeyPatch, name: str, star: str
) -> None:
    for variable in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for variable in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(variable, star if variable == name else "")
    environment.reach_this_machine()
    with requests.Session() as session:
        for address in ("127.0.0.1:80", "cluster.example.com"):
            found = session.merge_environment_settings(f"http://{address}/", {}, None, None, None)
            assert not found["proxies"]


def test_git_is_asked_about_the_folder_that_is_named() -> None:
    named = subprocess.run(
        ["git", "rev-parse", "--local-env-vars"], capture_output=True, text=True, check=True
    ).stdout.split()
    of_settings = {"GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}
    of_settings |= {"GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE"}
    of_settings |= {"GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INTERNAL_SUPER_PREFIX"}
    left = environment.kept(dict.fromkeys(named, "x"), environment.GIT)
    assert left.keys() <= of_settings


def test_a_user_who_points_a_command_at_another_cluster_is_told(tmp_path: Path) -> None:
    file = tmp_path / "production.toml"
    file.write_text(
        'proxy = "cluster.example.com"\nqueues = ["//a/q"]\nconsumer = "//a/c"\n'
        'checkpoint = "//a/p"\nledger = "//a/l"\n[outputs]\noutput = "//a/o"\n'
    )
    assert token(load(file, SHELL), SHELL) == "secret"
    with pytest.raises(Exception, match="YT_PROXY=other"):
        load(file, {**SHELL, "YT_PROXY": "other.example.com"})


@pytest.mark.parametrize(
    "name", ["my jobs (1)", "it's", "a&b", "a#b", "a%20b", "a+b", "a,b", "задачи"]
)
def test_a_path_that_scripts_cannot_take_gets_a_link(tmp_path: Path, name: str) -> None:
    (folder := tmp_path / name).mkdir()
    (folder / "file").write_text("here")
    link = plain(folder)
    try:
        assert re.fullmatch("[A-Za-z0-9_./-]+", str(link))
        assert (link / "file").read_text() == "here"
        assert plain(folder) == link
    finally:
        link.unlink()


def test_a_plain_path_stays() -> None:
    assert plain(Path("/usr/lib")) == Path("/usr/lib")
    assert plain(Path("/usr/lib/python3.11")) == Path("/usr/lib/python3.11")


def test_a_link_of_someone_else_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "my jobs").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    link = plain(folder)
    assert link.parent == tmp_path
    link.unlink()
    link.symlink_to("/etc")
    other = plain(folder)
    try:
        assert other.parent != tmp_path
        assert other.resolve() == folder.resolve()
    finally:
        other.unlink()
