"""What SPYT's client finds in Cypress, what a job makes of it, and the Python of a node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yt.wrapper as yt
from yt.wrapper.spec_builders import VanillaSpecBuilder

from minicluster import testing
from minicluster.core.errors import YtError
from minicluster.cypress.commands import Cypress
from minicluster.release import archives, documents, node, publish

ARCHIVED = b"kept\n"


def _home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.fixture
def files(cypress: Cypress) -> list[str]:
    return publish.publish(cypress)


@pytest.fixture
def sandbox(cypress: Cypress, files: list[str], tmp_path: Path) -> Path:
    """A folder with the files that the release and the distribution give to a job."""
    for path in files:
        file = tmp_path / path.rpartition("/")[2]
        file.write_bytes(cypress.read_file(path))
        if cypress.exists(f"{path}/@executable"):
            file.chmod(0o755)
    return tmp_path


def _unpack(sandbox: Path, *words: str) -> subprocess.CompletedProcess[str]:
    given = words or ("--spark-home", str(sandbox), "--spark-distributive", _tgz())
    command = ["./setup-spyt-env.sh", *given]
    return subprocess.run(command, cwd=sandbox, check=False, capture_output=True, text=True)


def _tgz() -> str:
    return f"spark-{metadata.version('pyspark')}-bin-hadoop3.tgz"


def test_the_client_finds_everything_where_it_looks(cypress: Cypress, files: list[str]) -> None:
    """The reads of SPYT's YTsaurusOperationManager.create, in its order."""
    common = cypress.get("//home/spark/conf/global")
    assert common["environment"]["IS_SPARK_CLUSTER"] == "true"
    spyt = metadata.version("ytsaurus-spyt")
    release = cypress.get(f"//home/spark/conf/releases/{spyt}/spark-launch-conf")
    assert release["spark_conf"]["spark.yt.version"] == spyt
    assert all(isinstance(value, str) for value in release["spark_conf"].values())
    assert release["file_paths"] == files[:2]
    major, minor, patch = metadata.version("pyspark").split(".")
    assert cypress.list(f"//home/spark/distrib/{major}/{minor}/{patch}") == [_tgz()]


def test_what_was_published_before_is_replaced(cypress: Cypress, files: list[str]) -> None:
    before = {path: cypress.read_file(path) for path in files}
    cypress.write_file(files[0], b"of an older release")
    assert publish.publish(cypress) == files
    assert {path: cypress.read_file(path) for path in files} == before


def test_the_archives_are_small_and_a_job_unpacks_the_real_layout(sandbox: Path) -> None:
    assert sum(file.stat().st_size for file in sandbox.iterdir()) < 1_000_000
    done = _unpack(sandbox)
    assert done.returncode == 0, done.stderr
    jars = sorted(jar.name for jar in (sandbox / "spark/jars").glob("*.jar"))
    assert jars == sorted(jar.name for jar in (_home() / "jars").glob("*.jar"))
    assert all(zipfile.is_zipfile(jar) for jar in sandbox.rglob("*.jar"))
    assert (sandbox / "spark/python/lib/pyspark.zip").exists()
    assert os.access(sandbox / "spark/bin/spark-class", os.X_OK)
    home = sandbox / "spyt-package"
    agent = (home / "conf/java-opts").read_text().strip().removeprefix("-javaagent:")
    assert Path(agent).is_relative_to(home / "jars/common")
    assert Path(agent).exists()
    assert (home / "python/spyt/__init__.py").read_bytes()
    assert os.access(home / "bin/driver-op-discovery.sh", os.R_OK)


def test_the_agent_is_found_from_another_folder(sandbox: Path) -> None:
    """The jobs of a Spark cluster call it with the home ".", and start processes in other ones."""
    done = _unpack(sandbox, "--spark-home", ".", "--spark-distributive", _tgz())
    assert done.returncode == 0, done.stderr
    options = (sandbox / "spyt-package/conf/java-opts").read_text().strip()
    assert Path(options.removeprefix("-javaagent:")).is_absolute()


@pytest.mark.thorough
@pytest.mark.parametrize("ending", ["zip", "tar.gz", "tgz"])
def test_an_archive_of_the_job_is_unpacked_under_its_name(sandbox: Path, ending: str) -> None:
    content = sandbox / "content"
    content.mkdir()
    (content / "file.txt").write_bytes(ARCHIVED)
    archive = f"../packages-arc-dep.{ending}"
    pack = ["tar", "-czf", archive, "file.txt"]
    if ending == "zip":
        pack = [sys.executable, "-m", "zipfile", "-c", archive, "file.txt"]
    subprocess.run(pack, cwd=content, check=True)
    assert _unpack(sandbox).returncode == 0
    assert (sandbox / "packages/file.txt").read_bytes() == ARCHIVED


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--use-squashfs",), "unknown argument --use-squashfs"),
        (("--spark-home", ".", "--spark-distributive", "gone.tgz"), "gone.tgz"),
    ],
)
def test_a_job_that_cannot_unpack_fails(sandbox: Path, words: tuple[str, ...], said: str) -> None:
    done = _unpack(sandbox, *words)
    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize(
    ("version", "folder"),
    [
        ("2.11.2", "releases/2.11.2"),
        ("2.12.0-beta-1", "pre-releases/2.12.0-beta-1"),
        ("2.12.0-rc1", "pre-releases/2.12.0-rc1"),
        ("2.12.0-7-SNAPSHOT", "snapshots/2.12.0-7-SNAPSHOT"),
    ],
)
def test_a_release_lies_where_its_kind_says(version: str, folder: str) -> None:
    assert documents.launch_conf_path(version) == f"//home/spark/conf/{folder}/spark-launch-conf"
    assert documents.spyt_path(version) == f"//home/spark/spyt/{folder}"


def _fake_home(folder: Path, version: str) -> Path:
    for name in (
        f"jars/spark-core_2.12-{version}.jar",
        "bin/spark-class",
        "python/lib/pyspark.zip",
    ):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


def test_several_sparks_are_published_side_by_side(cypress: Cypress, tmp_path: Path) -> None:
    homes = [_fake_home(tmp_path / version, version) for version in ("3.5.7", "3.5.10")]
    publish.publish(cypress, homes)
    assert cypress.list("//home/spark/distrib/3/5/7") == ["spark-3.5.7-bin-hadoop3.tgz"]
    assert cypress.list("//home/spark/distrib/3/5/10") == ["spark-3.5.10-bin-hadoop3.tgz"]


def test_a_folder_without_spark_is_refused_before_anything_is_published(
    cypress: Cypress, tmp_path: Path
) -> None:
    with pytest.raises(YtError, match="is not a Spark: it has no jars/spark-core"):
        publish.publish(cypress, [tmp_path])
    assert not cypress.exists("//home/spark")


def test_equal_files_give_equal_archives(tmp_path: Path) -> None:
    home = _fake_home(tmp_path, "3.5.7")
    first = archives.spark_archive(home)
    for file in home.rglob("*"):
        os.utime(file, (1, 1))
    assert archives.spark_archive(home) == first


# -- a node's Python -------------------------------------------------------------------------------


def _python(bin: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{bin}:/usr/bin:/bin"}
    return subprocess.run(
        ["python3", "-c", code], env=environment, capture_output=True, text=True, check=False
    )


def _has(bin: Path, *modules: str) -> dict[str, bool]:
    return {module: _python(bin, f"import {module}").returncode == 0 for module in modules}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node.make(tmp_path_factory.mktemp("bare") / "node")


def test_a_node_has_what_spyt_needs_and_nothing_of_this_environment(bare: Path) -> None:
    there = ("yt.wrapper", "yt_yson_bindings", "packaging.version")
    assert _has(bare, *there) == dict.fromkeys(there, True)
    gone = ("pyspark", "spyt", "ytstream", "minicluster", "numpy", "pandas", "pyarrow", "pytest")
    assert _has(bare, *gone) == dict.fromkeys(gone, False)
    done = _python(bare, "import sys; print(*sys.path[1:], sep='\\n')")
    outside = [
        path
        for path in done.stdout.split()
        if not Path(path).is_relative_to(bare.parent)
        and not Path(path).is_relative_to(sys.base_prefix)
    ]
    assert outside == []
    assert _python(bare, "import yt.wrapper as yt; yt.YtClient('x', token='t')").returncode == 0


def test_a_node_may_lack_a_package(tmp_path: Path) -> None:
    bin = node.make(tmp_path / "node", without=("packaging",))
    assert _has(bin, "packaging", "yt.wrapper") == {"packaging": False, "yt.wrapper": True}


def test_a_node_may_have_more_with_what_it_requires(tmp_path: Path) -> None:
    bin = node.make(tmp_path / "node", more=("ytsaurus_spyt",))
    assert _has(bin, "yaml", "pytest") == {"yaml": True, "pytest": False}


def test_a_node_may_say_that_it_is_older(tmp_path: Path) -> None:
    bin = node.make(tmp_path / "node", says="3.9")
    code = "import sys, yt.wrapper; print(sys.version_info[:2], sys.version_info.minor)"
    assert _python(bin, code).stdout == "(3, 9) 9\n"
    code = "import platform; print(platform.python_version(), platform.python_implementation())"
    assert _python(bin, code).stdout == "3.9.0 CPython\n"


def test_an_unknown_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(YtError, match="not-installed-anywhere is not installed here"):
        node.make(tmp_path / "node", more=("not-installed-anywhere",))


def test_what_operations_need_and_this_machine_lacks_is_named(monkeypatch: Any) -> None:
    assert publish.missing() == []
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert publish.missing() == ["bash", "tar", "java"]


def test_the_java_of_jobs_is_that_of_java_home_or_of_the_path(
    monkeypatch: Any, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        program = tmp_path / name / "bin/java"
        program.parent.mkdir(parents=True)
        program.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "first/bin"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert node.java_home() == tmp_path / "first"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "second"))
    assert node.java_home() == tmp_path / "second"


# -- python -m minicluster --operations ------------------------------------------------------------


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _served(*words: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "minicluster", "--http-port", "0", "--rpc-proxies", "0"]
    parent = str(Path(publish.__file__).parents[2])
    return subprocess.run(
        [*command, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": parent, "PATH": path or os.environ["PATH"]},
        timeout=60,
    )


def test_a_cluster_with_operations_has_a_release_and_nodes_for_it(tmp_path: Path) -> None:
    home = _fake_home(tmp_path, "3.5.7")
    with testing.start(rpc_proxies=0, operations=True, spark_homes=[home]) as cluster:
        client = yt.YtClient(f"http://{cluster.http}", token="any")
        assert client.list("//home/spark/distrib/3/5/7") == ["spark-3.5.7-bin-hadoop3.tgz"]
        assert client.exists("//home/spark/conf/global")
        code = 'import sys; sys.stderr.write(str("spyt" in sys.modules) + sys.prefix)'
        command = f"python3 -c '{code}' && $JAVA_HOME/bin/java -version"
        task = VanillaSpecBuilder().begin_task("probe").command(command).job_count(1).end_task()
        operation = client.run_operation(task, sync=False).id
        wait_until(lambda: client.get_operation_state(operation).is_finished())
        (job,) = cluster.client.operations.list()[0].jobs
        said = client.get_job_stderr(operation, job.id).read().decode()
        assert job.state == "completed", said
        bare = Path(said.partition("\n")[0].removeprefix("False"))
        assert bare.is_relative_to(tempfile.gettempdir())
        assert "version" in said
    assert not bare.exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--spark-home", "/nowhere"), 2, "--spark-home needs --operations"),
        (("--operations", "--spark-home", "/nowhere"), 1, "/nowhere is not a Spark"),
    ],
)
def test_a_bad_option_is_one_line(words: tuple[str, ...], code: int, said: str) -> None:
    done = _served(*words)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_machine_without_tar_publishes_no_spark(tmp_path: Path) -> None:
    for name in ("bash", "java"):
        found = shutil.which(name)
        assert found is not None
        (tmp_path / name).symlink_to(found)
    done = _served("--operations", "--spark-home", "/nowhere", path=str(tmp_path))
    assert done.returncode == 2
    assert "spark-submit needs tar here" in done.stderr
