"""Audit the workflows with zizmor, offline: this repository's, and those that it generates.

python -m tools.audit FILE_OF_ZIZMOR
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools.example import ROOT, generated

#: Answers that change what a workflow says.
ANSWERS: dict[str, dict[str, str]] = {
    "github": {"ci": "github"},
    "github-image": {"ci": "github", "ci_image": f"registry.example.com/ci@sha256:{'0' * 64}"},
}
#: The strictest of its personas; no file of ours ignores a finding.
WORDS = ("--offline", "--persona", "pedantic", "--no-progress")


def main(program: str) -> int:
    """Return the exit code of zizmor: not 0 when there is a finding in one of the trees."""
    with tempfile.TemporaryDirectory() as folder:
        made = [generated(Path(folder) / name, answers) for name, answers in ANSWERS.items()]
        return subprocess.run([program, *WORDS, ROOT, *made], check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.audit FILE_OF_ZIZMOR")
    sys.exit(main(sys.argv[1]))
