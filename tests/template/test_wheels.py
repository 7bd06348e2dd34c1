"""The wheels of the packages: the same bytes everywhere, whole, and enough to run a job."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from packaging.metadata import Metadata
from trove_classifiers import classifiers

from local_extensions import wheels
from local_extensions.versions import SPARK
from minicluster import testing
from tests.conftest import Generate
from tests.support.jvm import submit_args
from tests.support.project import DOCTOR, MINICLUSTER, ROOT, TOOLS, YTSTREAM
from tests.support.waiting import eventually
from tools.overlay import overlay

NAMES = ("minicluster", "ytstream", "ytstream_tools")
ALL = {
    "minicluster": MINICLUSTER,
    "ytstream": YTSTREAM,
    "ytstream-tools": TOOLS,
    "ytstream-doctor": DOCTOR,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    wheels.build_all(wheels.PUBLISHED, folder)
    return folder


def test_the_same_sources_give_the_same_bytes(built: Path, tmp_path: Path) -> None:
    """In another process, folder, time zone, order of sets, and with bytecode lying about."""
    environment = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "7"}
    words = [sys.executable, "-S", "local_extensions/wheels.py", str(tmp_path)]
    subprocess.run(words, cwd=ROOT, env=environment, check=True, capture_output=True)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in built.iterdir()}
    for path in built.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_the_sums_are_those_of_the_wheels(built: Path) -> None:
    lines = (built / "SHA256SUMS").read_text().splitlines()
    assert [line.partition("  ")[2] for line in lines] == sorted(
        path.name for path in built.glob("*.whl")
    )
    for line in lines:
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("package", ALL)
def test_a_wheel_holds_the_package_and_its_metadata(built: Path, package: str) -> None:
    version, name, sources = wheels.version(package), package.replace("-", "_"), ALL[package]
    with zipfile.ZipFile(built / f"{name}-{version}-py3-none-any.whl") as archive:
        held = set(archive.namelist())
        described = archive.read(f"{name}-{version}.dist-info/METADATA")
        assert all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())
    wanted = {
        f"{name}/{path.relative_to(sources).as_posix()}"
        for path in sources.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert f"{name}/py.typed" in wanted
    assert {path for path in held if not path.startswith(f"{name}-")} == wanted
    text = (ROOT / "packages" / package / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    metadata = message_from_bytes(described)
    assert (metadata["Name"], metadata["Version"]) == (package, version)
    assert Metadata.from_email(described, validate=True).summary == project["description"]
    assert metadata.get_all("Classifier") == project["classifiers"]
    assert {*project["classifiers"]} <= classifiers, "PyPI refuses a package with any other"
    assert metadata["Keywords"] == (",".join(project.get("keywords", ())) or None)
    assert f"{name}-{version}.dist-info/licenses/{metadata['License-File']}" in held
    required = metadata.get_all("Requires-Dist") or []
    assert set(project["dependencies"]) <= set(required)
    for extra, needed in project.get("optional-dependencies", {}).items():
        assert extra in (metadata.get_all("Provides-Extra") or [])
        assert {f'{one} ; extra == "{extra}"' for one in needed} <= set(required)


def test_each_version_of_a_package_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    for name in ALL:
        assert f"## {wheels.version(name)}" in changelog, name


def test_the_packages_require_each_other_in_the_one_version() -> None:
    """Their modules call each other without a contract of their own."""
    for package in wheels.PUBLISHED:
        project = wheels.described(package)
        needed = [*project["dependencies"]]
        for more in project.get("optional-dependencies", {}).values():
            needed += more
        own = [each for each in needed if each.startswith("ytstream")]
        assert all(each.endswith(f"=={wheels.version('ytstream')}") for each in own), own


def _without_ours(environment: Path, venv: Path) -> Path:
    """Make an environment with the packages of another one, ours left out; return its Python."""
    overlay(environment, venv)
    (packages,) = venv.glob("lib/python3.*/site-packages")
    for name in NAMES:
        shutil.rmtree(packages / name)
        shutil.rmtree(next(packages.glob(f"{name}-*.dist-info")))
    # The template's editable installs too: pip would take them for what is wanted.
    (beneath := venv / "beneath").mkdir()
    for entry in next(environment.glob("lib/python3.*/site-packages")).iterdir():
        if not entry.name.startswith(NAMES):
            (beneath / entry.name).symlink_to(entry)
    (packages / "beneath.pth").write_text(f"{beneath}\n")
    return venv / "bin" / "python"


def _await(line: str, job: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the job has logged such a line; fail when it ends before, or takes too long."""
    eventually(
        lambda: re.search(line, log.read_text()),
        300,
        meanwhile=lambda: job.poll() is None,
        said=log.read_text,
    )


@pytest.mark.thorough
@pytest.mark.slow
@pytest.mark.spark
def test_a_job_runs_from_the_archive_alone(
    installed: dict[str, Path], environments: dict[str, Path], generate: Generate, tmp_path: Path
) -> None:
    """As in a driver's container: main.py, a configuration, the archive, and SPYT's packages."""
    project = generate()
    code = (
        "from pathlib import Path; from ytstream.declaration import archive; "
        f"archive.archive('bids_stream', Path({str(tmp_path)!r}))"
    )
    subprocess.run(
        [installed[SPARK] / "bin" / "python", "-c", code],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
        check=True,
    )
    shutil.copy(project / "main.py", tmp_path)
    shutil.copy(project / "config" / "local.toml", tmp_path)
    python = _without_ours(environments[SPARK], tmp_path / "venv")
    with testing.start() as cluster:
        environment = {
            **os.environ,
            "PYTHONPATH": str(tmp_path / "bids_stream.zip"),
            "YTSTREAM_SUBMIT_ARGS": submit_args(),
            "YT_PROXY": cluster.http,
        }
        at_project = {**environment, "PYTHONPATH": str(project / "src")}
        words = [str(installed[SPARK] / "bin" / "python"), "-m", "bids_stream"]
        subprocess.run([*words, "provision"], cwd=project, env=at_project, check=True)
        log = tmp_path / "job.log"
        with log.open("w") as out:
            job = subprocess.Popen(
                [python, "main.py", "--config", "local.toml"],
                cwd=tmp_path, env=environment, stdout=out, stderr=out,
            )  # fmt: skip
        try:
            _await("running, epoch 1: ", job, log)
            env_rows = {**at_project, "PYTHONPATH": f"{project / 'src'}{os.pathsep}{project}"}
            subprocess.run([*words, "rows"], cwd=project, env=env_rows, check=True)
            _await(r"batch 1-\d+: read 1,000 ", job, log)
        finally:
            job.terminate()
            ended = job.wait(120)
        assert ended == 0, log.read_text()
        assert "Reconfiguration failed" not in log.read_text()


@pytest.mark.thorough
@pytest.mark.slow
def test_the_archive_of_a_cluster_is_built_where_only_the_wheels_are_installed(
    installed: dict[str, Path], generate: Generate, tmp_path: Path
) -> None:
    project = generate()
    code = f"""
import sys
from pathlib import Path
import ytstream
assert "site-packages" in ytstream.__file__, ytstream.__file__
from ytstream.declaration import archive
archive.verify_imports("bids_stream")
print(archive.archive("bids_stream", Path({str(tmp_path)!r})))
"""
    environment = {**os.environ, "PYTHONPATH": str(project / "src")}
    python = installed[SPARK] / "bin" / "python"
    done = subprocess.run(
        [python, "-c", code],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    archive = tmp_path / "bids_stream.zip"
    with zipfile.ZipFile(archive) as held:
        names = set(held.namelist())
    assert {"ytstream/cli.py", "bids_stream/job.py"} <= names
    left_out = ("ytstream_tools", "ytstream_doctor", "minicluster")
    assert not [name for name in names if name.startswith(left_out)]
    # As a driver finds it: the archive on the path, and nothing of the repository.
    code = "import ytstream, bids_stream.job as j; print(ytstream.__file__, j.__file__, j.JOB.name)"
    done = subprocess.run(
        [python, "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"],
        cwd="/", env={**os.environ, "PYTHONPATH": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(str(archive)) == 2


@pytest.mark.thorough
@pytest.mark.slow
def test_a_project_is_set_up_from_an_index_that_has_the_wheels_of_make_dist(
    environments: dict[str, Path], generate: Generate, tmp_path: Path
) -> None:
    """The other packages are there already: the index has none of them."""
    index, venv = tmp_path / "simple", tmp_path / "venv"
    for package in wheels.PACKAGES:
        file = wheels.build(package, index / package.name)
        (index / package.name / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')
    python = _without_ours(environments[SPARK], venv)
    project = generate(runtime_from="index")
    words = ["make", "installed", f"VENV={venv}", "UV="]
    environment = {name: value for name, value in os.environ.items() if "MAKE" not in name}
    environment |= {"PIP_INDEX_URL": index.as_uri(), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(
        words, cwd=project, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    code = "import ytstream, minicluster; print(ytstream.__file__, minicluster.__file__)"
    shown = subprocess.run(
        [python, "-c", code], cwd="/", env={**os.environ, "PYTHONPATH": ""},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert shown.count(str(venv)) == 2


def test_the_hook_builds_them_and_leaves_no_bytecode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """cruft's next commit would be rendered with it: same folder, same second."""
    (extension := tmp_path / "local_extensions").mkdir()
    (project := tmp_path / "project").mkdir()
    shutil.copy(wheels.__file__, extension)
    (tmp_path / "packages").symlink_to(ROOT / "packages")
    shutil.copy(ROOT / "LICENSE", tmp_path)
    hook = (ROOT / "hooks/post_gen_project.py").read_text(encoding="utf-8")
    hook = hook.replace("{{ wheels_builder | python }}", str(extension / "wheels.py"))
    (tmp_path / "hook.py").write_text(hook.replace("{{ cookiecutter.runtime_from }}", "wheels"))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    subprocess.run([sys.executable, tmp_path / "hook.py"], cwd=project, check=True)
    assert len([*(project / "vendor").glob("*.whl")]) == len(wheels.PACKAGES)
    assert [file.name for file in extension.iterdir()] == ["wheels.py"]
