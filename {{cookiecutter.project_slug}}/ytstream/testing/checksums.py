"""Compare a vendored folder with its release: ``python checksums.py FOLDER ...``.

Each folder has a file CHECKSUMS with one line per file, as ``sha256sum`` writes them. A difference
is a warning, not an error: the owner may keep the fork, but an upgrade will conflict with it.
Standard library only; with ``--write`` the files are written anew.
"""

import sys
from hashlib import sha256
from pathlib import Path

NAME = "CHECKSUMS"


def written(folder: Path) -> dict[str, str]:
    """Return the sums of the folder's file CHECKSUMS by relative path; empty without it."""
    file = folder / NAME
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return {name: sum_ for sum_, _, name in (line.partition("  ") for line in lines)}


def computed(folder: Path) -> dict[str, str]:
    """Return the sums of the folder's files by relative path, without caches."""
    return {
        path.relative_to(folder).as_posix(): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and path != folder / NAME
        and not {"__pycache__", ".mypy_cache", ".ruff_cache"} & {*path.relative_to(folder).parts}
    }


def differences(folder: Path) -> list[str]:
    """Return a line for each file that was changed, added or removed."""
    before, now = written(folder), computed(folder)
    return [
        f"{folder.name}/{name} was "
        + ("added" if name not in before else "removed" if name not in now else "changed")
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def write(folder: Path) -> None:
    """Write the folder's file CHECKSUMS."""
    lines = [f"{sum_}  {name}\n" for name, sum_ in computed(folder).items()]
    (folder / NAME).write_text("".join(lines), encoding="utf-8")


def main(words: list[str]) -> int:
    """Warn of differences, or write the sums; return 0 in any case."""
    for folder in (Path(word) for word in words if word != "--write"):
        if "--write" in words:
            write(folder)
            continue
        for line in differences(folder):
            print(f"warning: {line}: an upgrade will conflict; `git log -- {folder}` shows it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
