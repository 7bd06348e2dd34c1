"""Run SPYT's own end-to-end tests on a minicluster that runs operations.

    make spyt-tests CHECKOUT=FOLDER [ONLY="test_data_types.py test_cluster.py::test_x ..."]

FOLDER is a checkout of github.com/ytsaurus/ytsaurus-spyt: nothing is fetched here. Each file has a
minicluster of its own. Their results and the first line of each failure are printed; the exit code
is 0 if every file could be run. docs/real.md says what passes and why the others do not.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from local_extensions.versions import SPARK_VERSIONS
from minicluster import testing
from minicluster.release import archives, node, publish
from tools import conformance, spyt_plugin
from tools.conformance import Answers
from tools.example import ROOT
from ytstream.settings import environment as variables
from ytstream_tools.demo.guard import guarded

FILES = (
    "test_data_types.py",
    "test_rest_submit.py",
    "test_spec.py",
    "test_access_levels.py",
    "test_metrics.py",
    "test_extensions.py",
    "test_spyt_connect.py",
    "test_spark_version.py",
    "test_logs_export.py",
    "test_dyn_allocation.py",
    "test_base_jobs.py",
    "test_cluster.py",
    "test_direct_submit.py",
)
"""All of the folder, the quick ones first."""
LIMIT_SECONDS, TEST_SECONDS = 3600, 240
"""A file is given up after the first time, and a test after the second."""
WORK = ROOT / "build" / "spyt-tests"
TWO_SPARKS = "test_spark_version.py"
"""This file submits a job to another Spark than the driver's, which is in an environment here."""
OTHER_SPARK = f".venv-{SPARK_VERSIONS[-1]}/lib/python3*/site-packages/pyspark"


def run_file(checkout: Path, name: str) -> Answers:
    """Run one file on a minicluster of its own."""
    WORK.mkdir(parents=True, exist_ok=True)
    homes = sparks(name)
    with (
        tempfile.TemporaryDirectory() as folder,
        # The nodes of their image have pyarrow (e2e-test/yt_local/Dockerfile), as we have.
        testing.start(operations=True, spark_homes=homes, node_python=sys.executable) as cluster,
    ):
        report = Path(folder, "report.xml")
        log = WORK / f"{name}.log"
        with log.open("w") as sink:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-p", "tools.spyt_plugin", "--tb=short",
                 "-c", os.devnull, "-p", "no:cacheprovider", f"--junitxml={report}",
                 str(checkout / "e2e-test" / "tests" / name)],
                cwd=WORK,
                env=environment(checkout, cluster.http, homes),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a group with the drivers that the tests start
            )  # fmt: skip
            try:
                with guarded(group=process.pid):
                    process.wait(LIMIT_SECONDS)
            except subprocess.TimeoutExpired:
                return Answers(problem=f"not done after {LIMIT_SECONDS} s, see {log}")
            finally:
                with suppress(ProcessLookupError):  # nothing of the group is left
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if not report.is_file():
            return Answers(problem=f"pytest ended with {process.returncode}, see {log}")
        return conformance.answers_in(report.read_text(encoding="utf-8"))


def sparks(name: str) -> list[Path]:
    """Return the Sparks that a file needs on the cluster: the installed one is the first."""
    others = sorted(ROOT.glob(OTHER_SPARK)) if name.startswith(TWO_SPARKS) else []
    return [_folder_of("pyspark"), *others]


def environment(checkout: Path, http: str, homes: Sequence[Path]) -> dict[str, str]:
    """Return the environment of their `tox.ini`, with the versions that are installed here."""
    tests = checkout / "e2e-test"
    mine = variables.kept(os.environ, variables.CLUSTER, variables.SPARK)
    return {
        **mine,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT, tests, tests / "tests"))),
        "PROXY_PORT": http.rpartition(":")[2],
        "TOX_ENV_NAME": "minicluster",
        "SPARK_HOME": str(homes[0]),
        "SPARK_VERSIONS": " ".join(
            ".".join(map(str, archives.spark_version(home))) for home in homes
        ),
        "SPARK_CONF_DIR": str(_folder_of("spyt") / "conf"),  # what their spyt-env sets
        "SPARK_LOCAL_IP": "127.0.0.1",
        spyt_plugin.JAVA: str(node.java_home()),
        spyt_plugin.LIMIT: os.environ.get(spyt_plugin.LIMIT, str(TEST_SECONDS)),
    }


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def table_of(results: dict[str, Answers]) -> str:
    """Return the results as the table of a page, and each failure below it."""
    rows = [
        f"| `{name}` | {one.problem or f'{one.agree} of {_count(one)}'} |"
        for name, one in results.items()
    ]
    failures = [
        f"{case}: {answer.splitlines()[0] if answer else ''}"
        for one in results.values()
        for case, answer in one.differing.items()
    ]
    return "\n".join(["| file | passed |", "|---|---|", *rows, "", *failures])


def _count(one: Answers) -> int:
    return one.agree + one.skipped + len(one.differing)


def run(words: Sequence[str]) -> int:
    """Do what the words of the command line say; return the exit code."""
    if not words:
        print("usage: python -m tools.spyt_tests CHECKOUT [FILE ...]", file=sys.stderr)
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's background ignores the first
        signal.signal(number, signal.default_int_handler)
    try:
        return main(words)
    except KeyboardInterrupt:
        print("interrupted: pytest and its minicluster are stopped", file=sys.stderr)
        return 130


def main(words: Sequence[str]) -> int:
    """Run the files; return the exit code."""
    checkout, names = Path(words[0]).absolute(), words[1:] or FILES
    if not (checkout / "e2e-test" / "tests" / "conftest.py").is_file():
        print(f"error: {checkout} is not a checkout of ytsaurus-spyt: it has no e2e-test/tests",
              file=sys.stderr)  # fmt: skip
        return 1
    if missing := publish.missing():
        print(f"error: this machine lacks {', '.join(missing)}", file=sys.stderr)
        return 1
    results: dict[str, Answers] = {}
    for name in names:
        print(f"{name} ...", flush=True)
        results[name] = run_file(checkout, name)
    print(table_of(results))
    return int(any(one.problem for one in results.values()))


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
