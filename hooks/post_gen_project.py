"""Remove what rendering leaves behind, and put the runtime's wheels into vendor/."""

import importlib
import shutil
import sys
from pathlib import Path

CACHES = {"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache"}
# Of a project that is generated over an existing one; git keeps empty folders of its own.
NOT_OURS = {".git", ".venv"}
# Filled in when cookiecutter renders this hook: a hook is not told where the template is.
WHEELS = "{{ wheels_builder | python }}"
RUNTIME_FROM: str = "{{ cookiecutter.runtime_from }}"


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


def vendor(target: Path) -> None:
    """Build the wheels of the template's own packages, and remove those of an earlier version."""
    shutil.rmtree(target, ignore_errors=True)
    if RUNTIME_FROM == "wheels":
        # cruft checks another commit out into this folder soon: see `forget_the_extension`.
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(Path(WHEELS).parent))
        builder = importlib.import_module(Path(WHEELS).stem)
        builder.build_all(builder.PACKAGES, target)


tidy(Path.cwd())
vendor(Path("vendor"))
print(
    f"Made {Path.cwd().name}. Next:\n  cd {Path.cwd().name}\n"
    "  git init -b main && git add . && git commit -m 'From the template'\n"
    "  make demo    # runs the job on a cluster in memory, kills it and counts every row\n"
    "  make adopt CONFIG=config/production.toml    # takes columns and rows from your queue"
)
