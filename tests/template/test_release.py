"""What keeps a version from being released."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from local_extensions.versions import TEMPLATE_VERSION
from tests.support.project import ROOT
from tools import proof_digest, release

OUTDATED = ROOT / "templates/make/outdated.mk"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a changelog of this version, nothing uncommitted."""
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n## {TEMPLATE_VERSION} (2026-11-23)\n")
    folders = proof_digest.RUNTIME, proof_digest.LOCK.parent, proof_digest.SUMMARY.parent
    for folder in (*folders, proof_digest.BUILD):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / ".gitignore").write_text("/build/\n")
    (tmp_path / proof_digest.LOCK).touch()
    (tmp_path / proof_digest.RUNTIME / "batch.py").write_text("BATCH = 1\n")
    asset = tmp_path / proof_digest.BUILD / proof_digest.RESULTS
    asset.write_text("{}\n")
    parts = proof_digest.digests(proof_digest.PARTS, tmp_path)
    counted: dict[str, object] = {"cases": 300, "left": 0, "not_held": [], "missed": ["a"] * 3}
    _summary(tmp_path, parts=parts, sha256=proof_digest.checksum(asset), **counted)
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", "--all")
    _git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def _summary(root: Path, **fields: object) -> None:
    (root / proof_digest.SUMMARY).write_text(json.dumps(fields))


def _git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_a_version_that_everything_agrees_with_is_released(root: Path) -> None:
    assert [*release.problems(TEMPLATE_VERSION, root)] == []


def test_packages_template_and_changelog_have_to_have_the_version(root: Path) -> None:
    found = [*release.problems("9.9.9", root)]
    assert [problem.partition(" is ")[0] for problem in found[:5]] == [
        "minicluster",
        "ytstream",
        "ytstream-tools",
        "ytstream-doctor",
        "the template (local_extensions/versions.py)",
    ]
    (heading,) = found[5:]
    assert heading.startswith("CHANGELOG.md ")
    assert '"## 9.9.9 (' in heading


def test_a_dirty_tree_and_a_tag_that_exists_are_refused(root: Path) -> None:
    _git(root, "tag", f"v{TEMPLATE_VERSION}")
    (root / "new").touch()
    dirty, taken = release.problems(TEMPLATE_VERSION, root)
    assert "has changes" in dirty
    assert f"the tag v{TEMPLATE_VERSION}" in taken


def test_a_proof_of_another_runtime_is_none(root: Path) -> None:
    assert [*proof_digest.problems(root)] == []
    batch = root / proof_digest.RUNTIME / "batch.py"
    batch.write_text('"""A batch."""\n\nBATCH = 1  # a comment\n')
    assert [*proof_digest.problems(root)] == []
    batch.write_text("BATCH = 2\n")
    (said,) = proof_digest.problems(root)
    assert f"{proof_digest.SUMMARY} is of another runtime: " in said
    batch.write_text("BATCH = 1\n")
    (root / proof_digest.LOCK).write_text("another lock\n")
    assert len([*release.problems(TEMPLATE_VERSION, root)]) == 2  # this one, and the dirty tree
    known = json.loads((root / proof_digest.SUMMARY).read_text())
    known["parts"].pop("harness")
    _summary(root, **known)
    assert "another harness, packages: " in next(proof_digest.problems(root))
    (root / proof_digest.SUMMARY).write_text('{"runtime": "of former rules"}')
    assert ", ".join(proof_digest.PARTS) in next(proof_digest.problems(root))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"left": 3}, "3 cases of the proof have no result"),
        ({"not_held": [["failed", "a", "b"]]}, "1 cases of the proof failed"),
        ({"missed": ["a"] * 4}, "4 cases of the proof were missed, more than 1%"),
        ({"sha256": "0"}, "has another checksum"),
    ],
)
def test_a_proof_is_whole_and_its_asset_is_at_hand(
    root: Path, fields: dict[str, object], said: str
) -> None:
    found = json.loads((root / proof_digest.SUMMARY).read_text())
    _summary(root, **{**found, **fields})
    (problem,) = proof_digest.problems(root)
    assert said in problem
    (root / proof_digest.BUILD / proof_digest.RESULTS).unlink()
    assert any("is missing" in problem for problem in proof_digest.problems(root))


def test_a_word_is_no_version(root: Path) -> None:
    (said,) = release.problems("v1", root)
    assert said == "'v1' is not a version: give three numbers, as in 1.0.1"


def test_the_tag_is_the_one_that_make_outdated_asks_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.com")
    assert release.main([TEMPLATE_VERSION], root) == 0
    assert f"git push origin v{TEMPLATE_VERSION}" in capsys.readouterr().out
    listed = ["git", "ls-remote", "--tags", "--refs", "."]
    tags = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout
    asked = re.search(r"refs/tags/\S*?(?=\\\()", OUTDATED.read_text(encoding="utf-8"))
    assert asked is not None
    assert tags.split()[1:] == [asked[0] + TEMPLATE_VERSION]
