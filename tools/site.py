"""Build the documentation as a site, from the Markdown that is read in the repository, too.

    python -m tools.site FILE_OF_ZENSICAL

The pages are copied with the paths that they have, so a link that works in the repository works in
the site. A project that is generated with the default answers is there as an example. The build
ends at a link or at a heading that is not there.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.example import ROOT, generated

CONFIG = ROOT / "zensical.toml"
BUILD = ROOT / "build"
ASSETS = ("*.svg", "*.png", "*.css")
"""What pages need besides text."""
TOPS = ("README.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
"""Pages at the root."""
EXAMPLE = ("README.md", "docs/operations.md", "config/local.toml", "config/production.toml")
"""Pages of the generated project, by where they are in the site."""


def pages() -> list[str]:
    """Return the paths of the pages in the repository."""
    found = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "packages").glob("*/*.md")]
    return [*TOPS, *sorted(path.relative_to(ROOT).as_posix() for path in found)]


def listed(navigation: Any) -> Iterator[str]:
    """Yield the pages of the navigation, whatever their depth."""
    if isinstance(navigation, str):
        yield navigation
    else:
        parts = navigation.values() if isinstance(navigation, dict) else navigation
        for part in parts:
            yield from listed(part)


def navigation() -> list[str]:
    """Return the pages that zensical.toml lists."""
    return [*listed(tomllib.loads(CONFIG.read_text(encoding="utf-8"))["project"]["nav"])]


def stage(folder: Path) -> None:
    """Copy configuration, pages and assets into ``folder``, with an example beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    content = folder / "content"
    assets = (path for kind in ASSETS for path in (ROOT / "docs").rglob(kind))
    for name in [*pages(), "LICENSE", *(str(path.relative_to(ROOT)) for path in assets)]:
        (content / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, content / name)
    project = generated(folder / "generated", {})
    for name in EXAMPLE:
        (content / "example" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project / name, content / "example" / name)
    shutil.copy(CONFIG, folder)


def main(program: str) -> int:
    """Return the exit code of the generator; what it built is in build/site."""
    if forgotten := {*pages()} - {*navigation()}:
        print(f"zensical.toml lists no {', '.join(sorted(forgotten))}", file=sys.stderr)
        return 1
    folder = BUILD / "site-source"
    stage(folder)
    words = [str(Path(program).absolute()), "build", "--strict", "--clean"]
    done = subprocess.run(words, cwd=folder, check=False)
    if done.returncode == 0:
        shutil.rmtree(BUILD / "site", ignore_errors=True)
        shutil.copytree(folder / "site", BUILD / "site")
        print(f"{len(navigation())} pages in {(BUILD / 'site').relative_to(ROOT)}")
    return done.returncode


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.site FILE_OF_ZENSICAL")
    sys.exit(main(sys.argv[1]))
