"""tools/fleet.py: versions, an update that is pushed and opened, a conflict that is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from local_extensions.versions import SPARK
from local_extensions.versions import TEMPLATE_VERSION as VERSION
from tests.support.project import user_config
from tests.support.upgrades import commit, cruft, git
from tests.template.test_upgrade import edit, template
from tools import fleet

__all__ = ["template"]
NEXT = "9.0.0"


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tool commit, whatever the machine's settings."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "t")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "t@example.com")


def repository(folder: Path, template: Path, slug: str) -> Path:
    """Return a bare repository, as a server has it, of a generated project."""
    config = str(user_config(folder))
    answers = json.dumps({"project_slug": slug})
    words = ("--no-input", "--config-file", config, "--extra-context", answers)
    cruft(folder, "create", str(template), *words)
    commit(folder / slug, "generated")
    git(folder, "clone", "--quiet", "--bare", str(folder / slug), f"{slug}.git")
    return folder / f"{slug}.git"


def changed(bare: Path, file: str, old: str, new: str) -> None:
    """Commit an edit of the owner's."""
    clone = bare.parent / f"{bare.stem}-edit"
    git(bare.parent, "clone", "--quiet", str(bare), str(clone))
    edit(clone / file, old, new)
    git(clone, "commit", "--quiet", "--all", "--message", "ours")
    git(clone, "push", "--quiet")


@pytest.mark.thorough
@pytest.mark.slow
def test_a_fleet_is_updated_and_a_conflict_is_refused(
    tmp_path: Path, template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean, torn = (repository(tmp_path, template, name) for name in ("clean-job", "torn-job"))
    changed(torn, "Makefile", "COUNT=N       how many", "COUNT=N       our own words: how many")
    makefile = template / "{{cookiecutter.project_slug}}/Makefile"
    edit(makefile, "COUNT=N       how many", "COUNT=N       as many")
    edit(
        template / "local_extensions/versions.py",
        f'TEMPLATE_VERSION = "{VERSION}"',
        f'TEMPLATE_VERSION = "{NEXT}"',
    )
    commit(template, "a release")
    git(template, "tag", f"v{NEXT}")
    (tmp_path / "fleet.txt").write_text(f"{clean}\n# a comment\n{torn}\n{tmp_path}/gone.git\n")
    given = [str(tmp_path / "fleet.txt"), "--work", str(tmp_path / "work")]

    assert fleet.main(["versions", *given]) == 1  # the last one cannot be cloned
    first, second, third = capsys.readouterr().out.splitlines()
    assert first == f"{clean}  {VERSION}  transactional map {SPARK}"
    assert second == f"{torn}  {VERSION}  transactional map {SPARK}"
    assert "  FAILED  git clone: " in third

    opening = "sh -c 'git log -1 --format=%s > ../opened'"
    assert fleet.main(["update", *given, "--to", f"v{NEXT}", "--push", "--open", opening]) == 1
    first, second, _ = capsys.readouterr().out.splitlines()
    title = f"Template {VERSION} -> {NEXT}"
    assert first == f"{clean}  opened  {title}"
    assert second.startswith(f"{torn}  CONFLICT  Makefile")
    assert (tmp_path / "work/opened").read_text() == f"{title}\n"
    assert branches(clean) == ["main", f"template-v{NEXT}"]
    assert branches(torn) == ["main"]  # neither committed nor pushed

    only = tmp_path / "one.txt"
    only.write_text(f"{clean}\n")
    assert fleet.main(["update", str(only), *given[1:], "--to", f"v{NEXT}"]) == 0
    assert "is there already" in capsys.readouterr().out


def branches(bare: Path) -> list[str]:
    words = ["git", "for-each-ref", "--format=%(refname:short)", "refs/heads"]
    shown = subprocess.run(words, cwd=bare, capture_output=True, text=True, check=True).stdout
    return shown.replace("master", "main").split()


@pytest.mark.thorough
@pytest.mark.slow
def test_a_repository_says_that_the_template_has_a_newer_version(
    tmp_path: Path, template: Path
) -> None:
    config = str(user_config(tmp_path))
    cruft(tmp_path, "create", str(template), "--no-input", "--config-file", config)
    project = tmp_path / "bids-stream"

    def outdated(**more: str) -> tuple[int, str]:
        done = subprocess.run(
            ["make", "--no-print-directory", "outdated"],
            cwd=project, env={**fleet.environment(), "GITHUB_ACTIONS": "", **more},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.strip()

    for tag in (f"v{VERSION}", "v0.9.0", "v99.0.0-rc1", "nightly"):
        git(template, "tag", "--force", tag)
    code, said = outdated()
    assert (code, f"no newer version than {VERSION}" in said) == (0, True)
    for tag in ("v9.9.0", "v9.10.0"):
        git(template, "tag", tag)
    code, said = outdated()
    assert (code, f"repository is of {VERSION}: " in said) == (2, True)
    assert said.endswith(" cruft update --checkout v9.10.0")
    assert outdated(GITHUB_ACTIONS="true")[1].startswith("::warning title=Template::The template")

    template.rename(tmp_path / "away")
    code, said = outdated()
    assert (code, "cannot be reached" in said) == (0, True)
    (project / ".cruft.json").unlink()
    code, said = outdated()
    assert (code, "cruft link" in said) == (0, True)
