"""The Makefiles: what they offer, and what they say when the machine lacks something."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local_extensions import wheels
from local_extensions.versions import SPARK_VERSIONS
from tests.support.project import ROOT

OFFERED = {
    "template": [
        "help", "setup", "setup-all", "demo", "dist", "test", "test-all", "test-more",
        "journeys",
        "crash-matrix", "proof", "outages", "damage", "operations", "test-quick", "conformance",
        "test-cluster", "real", "spyt-tests", "fuzz", "bench", "lint", "audit", "site", "picture",
        "release", "locks",
    ],
    "project": [
        "help", "setup", "demo", "real", "test", "adopt", "approve", "preview", "lint", "format",
        "lock", "tables", "confs", "rows",
        "provision", "check", "run", "stop", "drain", "submit", "logs", "status", "why", "metrics",
        "page", "rewind", "migrate", "replay-rejected", "reference", "seal", "ops",
        "outdated",
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=["template", "project"])
def folder(request: pytest.FixtureRequest, plain: Path) -> Path:
    """Where a Makefile is: in the template, in a generated project."""
    return ROOT if request.param == "template" else plain


def make(
    folder: Path, *words: str, path: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run make with nothing but ``path`` on the PATH (default: everything)."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "JAVA"))
    }
    return subprocess.run(
        [str(shutil.which("make")), *words],
        cwd=folder,
        env={**inherited, **({"PATH": str(path)} if path else {}), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def tools(folder: Path, **scripts: str) -> Path:
    """Make a PATH with the shell's own tools and these scripts."""
    (path := folder / "bin").mkdir()
    for name in ("sh", "sed", "cut", "cksum", "test", "echo", "awk", "rm", "touch", "git", "mkdir"):
        if (found := shutil.which(name)) and name not in scripts:
            (path / name).symlink_to(found)
    for name, body in scripts.items():
        (path / name).write_text(f"#!/bin/sh\n{body}\n")
        (path / name).chmod(0o755)
    return path


JAVA_PACKAGES = (
    "apt install openjdk-17-jre-headless",
    "apt install openjdk-21-jre-headless",
    "java-21-openjdk-headless",
    "openjdk@21",
)
"""Debian 13 has no 17, Fedora neither, and Debian 12 has no 21."""
JAVA_17 = """echo 'openjdk version "17.0.1" 2021-10-19' >&2"""
JAVA_21 = """echo 'openjdk version "21" 2023-09-19' >&2"""


@pytest.mark.parametrize("words", [(), ("help",)])
def test_help_is_the_default_and_lists_what_is_offered(folder: Path, words: tuple[str]) -> None:
    done = make(folder, *words)
    kind = "template" if folder == ROOT else "project"
    assert re.findall(r"^make (\S+) +\S", done.stdout, re.MULTILINE) == OFFERED[kind]


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the message, without make's own closing line."""
    (message,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert done.returncode == 2
    return message


def test_a_missing_java_is_named_with_the_way_to_get_it(folder: Path, tmp_path: Path) -> None:
    message = one_line(make(folder, "prerequisites", path=tools(tmp_path)))
    assert message.startswith("Java 17 or 21 is missing: 'java' is not there.")
    for package in JAVA_PACKAGES:
        assert package in message
        assert package in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_stub_of_macos_is_a_missing_java(folder: Path, tmp_path: Path) -> None:
    java = "echo 'Unable to locate a Java Runtime.' >&2; exit 1"
    message = one_line(make(folder, "prerequisites", path=tools(tmp_path, java=java)))
    assert message.startswith("Java 17 or 21 is missing: 'java' is not there.")


@pytest.mark.parametrize("version", ["1.8.0_352", "11.0.2", "25", "170"])
def test_a_wrong_java_is_named_with_its_version(folder: Path, tmp_path: Path, version: str) -> None:
    java = f"""echo 'openjdk version "{version}" 2022-10-18' >&2"""
    message = one_line(make(folder, "prerequisites", path=tools(tmp_path, java=java)))
    assert f"'java' is version {version.split('.')[0]}." in message
    assert "JAVA_HOME" in message


def test_a_java_that_refuses_its_options_says_so_itself(folder: Path, tmp_path: Path) -> None:
    java = """echo 'Picked up JAVA_TOOL_OPTIONS: -Dx=secret -Xno' >&2
      echo 'Unrecognized option: -Xno'
      exit 1"""
    message = one_line(make(folder, "prerequisites", path=tools(tmp_path, java=java)))
    assert message.strip() == (
        "'java' does not start, it ends with code 1: Options are in JAVA_TOOL_OPTIONS. "
        "Unrecognized option: -Xno"
    )


@pytest.mark.parametrize("java", [JAVA_17, JAVA_21])
def test_a_supported_java_is_accepted(folder: Path, tmp_path: Path, java: str) -> None:
    done = make(folder, "prerequisites", path=tools(tmp_path, java=java))
    assert (done.returncode, done.stderr) == (0, "")


def test_java_home_goes_before_the_path(folder: Path, tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    path = tools(tmp_path, java=JAVA_17)
    assert make(folder, "prerequisites", path=path).returncode == 0
    message = one_line(make(folder, "prerequisites", path=path, JAVA_HOME=str(home)))
    assert f"'{home}/bin/java' is not there" in message


def test_a_missing_git_is_named(folder: Path, tmp_path: Path) -> None:
    path = tools(tmp_path, java=JAVA_17)
    (path / "git").unlink()
    assert one_line(make(folder, "prerequisites", path=path)).startswith("git is missing.")


@pytest.mark.parametrize("python", ["exit 1", "exit 127"])
def test_a_missing_python_is_named(plain: Path, tmp_path: Path, python: str) -> None:
    path = tools(tmp_path, java=JAVA_17, python3=python)
    done = make(plain, "setup", path=path)
    (message,) = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert message.startswith("Python 3.11 or later with venv is missing")
    assert "apt install python3 python3-venv" in message
    done = make(plain, "setup", f"PYTHON={tmp_path}/none", path=path)
    assert f"(looked for: {tmp_path}/none)" in done.stderr


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("QUEUES=3", "QUEUES=3: give 1 or 2"),
        ("SPARK=2.4", f"SPARK=2.4: give one of {' '.join(SPARK_VERSIONS)}"),
        ("GUARANTEE=none", "GUARANTEE=none: give one of transactional,idempotent,at_least_once"),
        (
            "GUARANTEE=at_least_once PROCESSING=aggregate",
            "processing aggregate goes with guarantee transactional only, not with at_least_once: ",
        ),
        ("GUARANTEE=idempotent PROCESSING=window", "-> give GUARANTEE=transactional"),
    ],
)
def test_a_demo_of_something_else_is_refused(word: str, message: str) -> None:
    done = make(ROOT, "demo", *word.split())
    assert done.returncode == 2
    assert message in done.stderr


def test_make_works_from_another_folder_or_says_how(plain: Path, tmp_path: Path) -> None:
    assert "make demo" in make(tmp_path, "-C", str(plain)).stdout
    done = make(tmp_path, "-f", str(plain / "Makefile"))
    said = re.sub(r"Makefile:\d+:", "Makefile:", one_line(done))
    assert said == (
        f"{plain}/Makefile: *** This is not the folder of bids_stream: cd there, or make -C "
        "FOLDER.  Stop."
    )


OFFLINE = """case "$*" in
  *"-m venv"*) for last; do :; done; mkdir -p "$last/bin"; cp "$0" "$last/bin/python" ;;
  *"-m pip"*) echo "ERROR: no network" >&2; exit 1 ;;
esac"""
"""An interpreter whose environments have a pip that reaches no index."""


@pytest.mark.parametrize("had", [False, True])
def test_a_set_up_without_a_network_says_so_and_leaves_no_half_of_an_environment(
    plain: Path, tmp_path: Path, had: bool
) -> None:
    path, venv = tools(tmp_path, java=JAVA_17, **{"python3.11": OFFLINE}), tmp_path / "venv"
    (path / "cp").symlink_to(str(shutil.which("cp")))
    if had:  # it was whole before a version was raised
        (venv / "bin").mkdir(parents=True)
        shutil.copy(path / "python3.11", venv / "bin" / "python")
    done = make(plain, "setup", f"VENV={venv}", path=path)
    assert done.returncode == 2
    assert "ERROR: no network" in done.stderr
    assert "The packages were not installed; the reason is above" in done.stderr
    assert "(an environment takes 1 GB). Without a network:" in done.stderr
    assert venv.exists() is had


def test_linters_need_no_java(plain: Path, tmp_path: Path) -> None:
    path = tools(tmp_path, **{"python3.11": OFFLINE})
    for target in ("lint", "format"):
        done = make(plain, "-n", target, path=path)
        assert done.returncode == 0
        assert "java" not in done.stdout.replace("java_", "")


def test_rewind_asks_where_to(plain: Path) -> None:
    done = make(plain, "rewind")
    assert one_line(done).endswith('TO="rows QUEUE:PARTITION=ROW ..." or TO="to-time TIME".  Stop.')


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("rows", "COUNT=5"), 'rows --config "config/local.toml" --count "5"'),
        (("rows",), 'rows --config "config/local.toml"'),
        (("rewind", "TO=latest"), 'rewind --config "config/local.toml" latest'),
        (
            ("rewind", "TO=rows //home/a:0=4 //home/a:1=5", "CONFIG=config/production.toml"),
            'rewind --config "config/production.toml" rows //home/a:0=4 //home/a:1=5',
        ),
    ],
)
def test_words_reach_the_command(plain: Path, words: tuple[str, ...], wanted: str) -> None:
    said = [line.rstrip() for line in make(plain, "-n", *words).stdout.splitlines()]
    assert f'".venv/bin/python" -m bids_stream {wanted}' in said


@pytest.mark.parametrize("name", ["FROM", "TO", "KEY", "TABLETS"])
def test_the_shell_runs_nothing_of_what_a_reference_is_given(
    plain: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "bin").mkdir()
    (python := tmp_path / "bin/python").write_text("""#!/bin/sh\nprintf '<%s>' "$@"\n""")
    python.chmod(0o755)
    given = {"FROM": "//home/a", "TO": "//home/b", "KEY": "a,b", "TABLETS": "2"}
    given[name] = evil = """`touch ran`'"; touch ran; echo "$HOME"""
    words = [f"{key}={value.replace('$', '$$')}" for key, value in given.items()]
    done = make(plain, "reference", f"VENV={tmp_path}", "MAKE=true", *words)
    assert f"<{evil}>" in done.stdout
    assert not (plain / "ran").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "default"),
    [(name, "local") for name in ("status", "stop", "check", "provision", "confs")]
    + [("submit", "production"), ("logs", "production")],
)
def test_a_config_that_is_given_or_exported_wins_for_every_target(
    plain: Path, monkeypatch: pytest.MonkeyPatch, target: str, default: str
) -> None:
    """Else `make submit` would start a job on one cluster, and `make stop` look at another."""
    monkeypatch.delenv("CONFIG", raising=False)
    staging = "config/staging.toml"
    for words, exported, wanted in (
        ((), None, f"config/{default}.toml"),
        ((f"CONFIG={staging}",), None, staging),
        ((), staging, staging),
        ((f"CONFIG={staging}",), "config/other.toml", staging),
    ):
        if exported is not None:
            monkeypatch.setenv("CONFIG", exported)
        said = make(plain, "-n", target, *words).stdout
        # Without an environment, a command for a person on call is one of the tools'.
        assert re.search(rf'-m (bids_stream|ytstream_tools) {target} --config "{wanted}"', said)


OF_OTHERS = {
    "GIT_DIR": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere/index",
    "PIP_USER": "1",
    "PIP_TARGET": "/nowhere",
    "PIP_ONLY_BINARY": ":all:",
    "PYTHONHOME": "/nowhere",
    "PYTHONINSPECT": "1",
    "UV_NO_BUILD": "1",
}
"""Variables that a shell may have for other work, and what recipes see of them."""
KEPT = {"PIP_INDEX_URL": "https://pypi.example.com/simple", "HTTP_PROXY": "http://127.0.0.1:9"}


def _seen(folder: Path, **environment: str) -> dict[str, str]:
    """Return the environment of a recipe."""
    done = subprocess.run(
        ["make", "--no-print-directory", "-f", "Makefile", "-f", "-", "seen"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **environment},
        input="seen:\n\t@env\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def test_a_recipe_sees_where_packages_come_from_and_nothing_of_other_work(folder: Path) -> None:
    seen = _seen(folder, **OF_OTHERS, **KEPT)
    assert not seen.items() & OF_OTHERS.items()
    assert {name: seen[name] for name in KEPT} == KEPT
    assert "/nowhere" not in _seen(folder, PYTHONPATH="/nowhere").get("PYTHONPATH", "")


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.parametrize("line", ["user = true", "require-hashes = true", "constraint = /nowhere"])
def test_a_recipe_installs_whatever_a_configuration_of_pip_says(
    folder: Path, tmp_path: Path, line: str
) -> None:
    (file := tmp_path / "pip.conf").write_text(f"[install]\n{line}\n")
    wheel = wheels.build(wheels.PACKAGES[0], tmp_path)
    environment = {"PATH": os.environ["PATH"], **_seen(folder, PIP_CONFIG_FILE=str(file))}
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", wheel],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["no_proxy", "NO_PROXY"])
def test_a_recipe_reaches_this_machine_without_a_proxy(folder: Path, name: str) -> None:
    here = "127.0.0.1,localhost,::1"
    assert _seen(folder)["no_proxy"] == here
    seen = _seen(folder, **{name: "intra.example.com"})
    assert seen["no_proxy"] == seen["NO_PROXY"] == f"intra.example.com,{here}"


@pytest.mark.parametrize(
    "locale",
    [
        {},
        {"LANG": "C"},
        {"LANG": "ru_RU.UTF-8", "LC_ALL": "C"},
        {"LC_ALL": "ru_RU.KOI8-R"},
        {"LANG": "ru"},
    ],
)
def test_a_recipe_has_a_locale_with_every_letter(folder: Path, locale: dict[str, str]) -> None:
    """Python reads the path files of an environment in the locale's encoding."""
    assert _seen(folder, **locale)["LC_ALL"] == "C.UTF-8"
    assert "LC_ALL" not in _seen(folder, LANG="ru_RU.UTF-8")


def test_a_folder_with_a_colon_is_refused(plain: Path, tmp_path: Path) -> None:
    (place := tmp_path / "a:b").mkdir()
    project = shutil.copytree(plain, place / "bids-stream")
    done = make(project, "setup")
    assert done.returncode == 2
    assert "The path of this folder has a colon" in done.stderr
