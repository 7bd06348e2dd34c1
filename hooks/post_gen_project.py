"""Remove what rendering leaves behind."""

import shutil
from pathlib import Path

CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
# Of a project that is generated over an existing one; git keeps empty folders of its own.
NOT_OURS = {".git", ".venv"}


def tidy(folder: Path) -> None:
    """Remove caches and empty folders, depth first: a folder of empty folders goes too."""
    for child in folder.iterdir():
        if not child.is_dir() or child.is_symlink() or child.name in NOT_OURS:
            continue
        if child.name in CACHES:
            shutil.rmtree(child)
            continue
        tidy(child)
        if not any(child.iterdir()):
            child.rmdir()


tidy(Path.cwd())
print(
    f"Made {Path.cwd().name}. Next:\n  cd {Path.cwd().name}\n  git init\n"
    "  make demo    # the job on a cluster in memory, killed and counted"
)
