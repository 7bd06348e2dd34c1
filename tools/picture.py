"""Draw what `make demo` prints into docs/demo.svg, from a demo that runs now.

    python -m tools.picture [FILE]    FILE: what a demo printed, with its colours

Nothing is left out of it but the lines before the first row is produced, which name this machine.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tools.example import ROOT

PICTURE = ROOT / "docs" / "demo.svg"
TITLE = "make demo"
FIRST = "produced "
WIDTH = 104
COLOURED = {"FORCE_COLOR": "1", "TTY_INTERACTIVE": "0", "COLUMNS": str(WIDTH)}
"""Colours without a terminal, and each bar once, as it is in the end."""
_CURSOR = re.compile(r"\x1b\[\?25[lh]")
"""Hides and shows the cursor."""
FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""The fonts that rich names are on a server; a page's own fonts do."""


def drawn(printed: str) -> str:
    """Return the picture of what a demo printed, as SVG."""
    lines = _CURSOR.sub("", printed).splitlines()
    first = next(n for n, line in enumerate(lines) if Text.from_ansi(line).plain.startswith(FIRST))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(lines[first:])), soft_wrap=False)
    return FONTS.sub("", console.export_svg(title=TITLE, unique_id="demo"))


def played() -> str:
    """Run a demo and return what it printed. Raises subprocess.CalledProcessError."""
    words = ["make", "--no-print-directory", "demo"]
    done = subprocess.run(
        words, cwd=ROOT, env=os.environ | COLOURED, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def main(files: list[str]) -> int:
    """Write the picture."""
    printed = Path(files[0]).read_text(encoding="utf-8") if files else played()
    svg = drawn(printed)
    PICTURE.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
