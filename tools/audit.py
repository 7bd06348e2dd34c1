"""Audit the workflows, offline: this repository's, and those that it generates.

zizmor finds what is not safe, jactionlint what is not a workflow: an unknown key, event, context or
input of an action. jactionlint is the maintained fork of actionlint. Wheels of actionlint itself
download its binary.

python -m tools.audit FILE_OF_ZIZMOR FILE_OF_JACTIONLINT
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.example import ROOT, generated

ANSWERS: dict[str, dict[str, str]] = {
    "github": {"ci": "github"},
    "github-image": {"ci": "github", "ci_image": f"registry.example.com/ci@sha256:{'0' * 64}"},
}
"""Answers that change what a workflow says."""
WORDS = ("--offline", "--persona", "pedantic", "--no-progress")
"""The strictest of its personas; no file of ours ignores a finding."""
LINT_WORDS = ("--strict-exit", "--no-color", "--shellcheck=", "--pyflakes=")
"""A warning fails as well. Without shellcheck and pyflakes it finds the same on every machine."""


def main(zizmor: str, jactionlint: str) -> int:
    """Return 0, or 1 when one of the two programs has a finding in one of the trees."""
    with tempfile.TemporaryDirectory() as folder:
        made = [generated(Path(folder) / name, answers) for name, answers in ANSWERS.items()]
        trees = [ROOT, *made]
        commands: list[list[str | Path]] = [
            [zizmor, *WORDS, *trees],
            [jactionlint, *LINT_WORDS, *(file for tree in trees for file in files(tree))],
        ]
        # Both run, whatever the first finds.
        codes = [subprocess.run(command, check=False).returncode for command in commands]
    return int(any(codes))


def files(tree: Path) -> list[Path]:
    """Return the workflows of a repository and its settings of Dependabot."""
    return sorted([*tree.glob(".github/workflows/*.yml"), *tree.glob(".github/dependabot.yml")])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m tools.audit FILE_OF_ZIZMOR FILE_OF_JACTIONLINT")
    sys.exit(main(*sys.argv[1:]))
