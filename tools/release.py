"""Tag a release, if tree, versions and changelog agree: ``python -m tools.release VERSION``."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from local_extensions import wheels
from local_extensions.versions import TEMPLATE_VERSION
from tools import proof_digest

ROOT = Path(__file__).resolve().parent.parent


def problems(version: str, root: Path = ROOT) -> Iterator[str]:
    """Yield what keeps ``version`` from being released."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"{version!r} is not a version: give three numbers, as in 1.0.1"
        return
    versions = {package.name: wheels.version(package.name) for package in wheels.PUBLISHED}
    for name, found in {
        **versions,
        "the template (local_extensions/versions.py)": TEMPLATE_VERSION,
    }.items():
        if found != version:
            yield f"{name} is {found}: raise it to {version}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f'CHANGELOG.md has no heading "## {version} (YYYY-MM-DD)"'
    if _git(root, "status", "--porcelain"):
        yield "the working tree has changes: commit them"
    if _git(root, "tag", "--list", tag(version)):
        yield f"the tag {tag(version)} exists"
    yield from proof_digest.problems(root)


def tag(version: str) -> str:
    """Return the tag of ``version``: what `make outdated` and `--checkout` ask for."""
    return f"v{version}"


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def main(words: list[str], root: Path = ROOT) -> int:
    """Tag the commit and say what comes next; return 1, with the reasons, if it cannot be."""
    if len(words) != 1:
        print("usage: python -m tools.release VERSION", file=sys.stderr)
        return 2
    (version,) = words
    if found := list(problems(version, root)):
        print(*found, sep="\n", file=sys.stderr)
        return 1
    name = tag(version)
    _git(root, "tag", "--annotate", name, "--message", f"Release {version}")
    asset = proof_digest.BUILD / proof_digest.RESULTS
    print(f"tagged {name}. Next:\n  git push origin {name}\n  make dist    # for your index")
    print(f"Attach {asset} to the release. Its SHA-256: {proof_digest.checksum(root / asset)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
