"""A browser without a window: chromium, which Debian has in a package of that name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from urllib.parse import quote

_SCHEMES = {"dark": 0, "light": 1}
"""Blink's names of the reader's wishes (preferred_color_scheme.mojom)."""
_WIDTHS = Path(__file__).with_name("widths.html")
_TEXTS = Path(__file__).with_name("texts.html")


def browser() -> str:
    """Return its path. Raises FileNotFoundError with what to install."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        command = "apt-get install --no-install-recommends chromium fonts-dejavu-core"
        raise FileNotFoundError(f"chromium is missing: {command}")
    return found


def opened(
    page: Path, scheme: str, folder: Path, *words: str, fragment: str = ""
) -> subprocess.CompletedProcess[str]:
    """Open a file for a reader who wants it "light" or "dark"."""
    return subprocess.run(
        [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--no-first-run", "--disable-background-networking", "--enable-logging=stderr",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}", *words,
            page.resolve().as_uri() + fragment,
        ],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip


def pictured(page: Path, scheme: str, target: Path, width: int, height: int) -> str:
    """Write what it shows as a PNG; return what the browser has complained about."""
    words = (f"--window-size={width},{height}", f"--screenshot={target}")
    return opened(page, scheme, target.parent, *words).stderr


def sideways(site: Path, pages: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Return which pages of a folder scroll sideways, at which of the widths, and by how much.

    A page next to them opens each in a frame. For files, the browser allows it only if told to.
    """
    opener = site / _WIDTHS.name
    shutil.copy(_WIDTHS, opener)
    asked = quote(json.dumps({"pages": pages, "widths": widths}))
    words = ("--allow-file-access-from-files", "--virtual-time-budget=600000", "--dump-dom")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        shown = opened(opener, "light", Path(folder), *words, fragment=f"#{asked}").stdout
    (found,) = re.findall(r"<pre id=\"found\">FOUND(.*)END</pre>", unescape(shown))
    return list(json.loads(found))


def crowded(picture: Path) -> list[str]:
    """Return the texts of an SVG file that leave the picture or overlap, with the fonts here."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = Path(folder, "page.html")
        parts = (picture.read_text(encoding="utf-8"), _TEXTS.read_text(encoding="utf-8"))
        page.write_text('<!doctype html><meta charset="utf-8"><body>' + "".join(parts), "utf-8")
        shown = opened(page, "light", Path(folder), "--window-size=1400,1000", "--dump-dom").stdout
    (found,) = re.findall("FOUND(.*)END</pre>", unescape(shown))
    return list(json.loads(found))


def colours(png: Path) -> dict[tuple[int, int, int], int]:
    """Return the colours of a PNG of a browser and how many pixels have each.

    Its lines are those of the specification: eight bits a colour, not interlaced, each line with a
    filter of its own (https://www.w3.org/TR/png-3/, "Filtering").
    """
    data, place, packed = png.read_bytes(), 8, b""
    width, step = 0, 3
    while place < len(data):
        length, kind = int.from_bytes(data[place : place + 4]), data[place + 4 : place + 8]
        body = data[place + 8 : place + 8 + length]
        if kind == b"IHDR":
            width, step = int.from_bytes(body[:4]), {2: 3, 6: 4}[body[9]]
        if kind == b"IDAT":
            packed += body
        place += length + 12
    raw, stride = zlib.decompress(packed), width * step
    found: dict[tuple[int, int, int], int] = {}
    above = bytearray(stride)
    for start in range(0, len(raw), stride + 1):
        line = bytearray(raw[start + 1 : start + 1 + stride])
        _restore(raw[start], line, above, step)
        for x in range(0, stride, step):
            pixel = (line[x], line[x + 1], line[x + 2])
            found[pixel] = found.get(pixel, 0) + 1
        above = line
    return found


def _restore(kind: int, line: bytearray, above: bytearray, step: int) -> None:
    for x in range(len(line)):
        left = line[x - step] if x >= step else 0
        corner = above[x - step] if x >= step else 0
        up = above[x]
        nearest = left + up - corner
        paeth = min((left, up, corner), key=lambda value: abs(nearest - value))
        line[x] = (line[x] + (0, left, up, (left + up) // 2, paeth)[kind]) % 256
