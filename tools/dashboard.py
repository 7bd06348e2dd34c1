"""Draw the dashboard of `dashboard` with figures that are made up, into docs/dashboard.svg.

    python -m tools.dashboard

The places, titles, units, lines, limits and marks are those of its JSON. So a person can look at
them without Grafana, and a reader of the docs sees what there is. Grafana draws them differently.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET
from zlib import crc32

from tools.example import ROOT
from ytstream_tools.report.drawing import element, rounded, short
from ytstream_tools.status import dashboard

PICTURE = ROOT / "docs" / "dashboard.svg"
_COLUMN, _ROW, _GAP = 50, 26, 8
"""Pixels of a column and a row of the grid, between panels, and around a chart."""
_TITLE, _SIDE, _FOOT, _LINE = 26, 46, 16, 14
"""Pixels above a chart, at its left, below it, and of each line of its legend."""
_LETTER = 7.2
"""Room for a letter: DejaVu Sans, the font of a plain Linux, is wider than most others."""
_POINTS = 90
_MARKS = {"Restarts": (0.55,), "Deploys": (0.3,)}
"""Where the marks are, as parts of the period."""
_LABELS = {
    "app": "bids", "output": "output", "reason": "old", "state": "running", "part": "write",
    "account": "bids", "resource": "nodes", "reference": "ads",
}  # fmt: skip
"""What the labels of a line are in the picture."""
_CELLS = (("app", "bids"), ("commit", "4f2c91d"), ("version", "1.1.0"), ("operation", "1a2b-3c4d"))
_LEVELS = {"s": 4.0, "rowsps": 4_000.0, "short": 900.0, "percentunit": 0.3, "bytes": 3e8}
"""Figures by unit, where no limit gives a size."""
_STYLE = """
svg { --back: #f4f5f8; --card: #fff; --ink: #1d2129; --dim: #5d6570; --grid: #e3e5ea;
  --bad: #b3261e; --c0: #0b63ce; --c1: #d55e00; --c2: #009e73; --c3: #a3528a; --orange: #c77700;
  --blue: #0b63ce; }
@media (prefers-color-scheme: dark) {
  svg { --back: #0e1014; --card: #181b20; --ink: #e6e8ec; --dim: #9aa2ad; --grid: #2c323b;
    --bad: #ff8a80; --c0: #6cb0ff; --c1: #ff9d57; --c2: #4fd1a5; --c3: #df9dca; --orange: #ffb454;
    --blue: #6cb0ff; } }
.back { fill: var(--back); } .card { fill: var(--card); stroke: var(--grid); }
text { font: 11px system-ui, "DejaVu Sans", sans-serif; fill: var(--dim); }
.title { font-weight: 600; font-size: 12px; fill: var(--ink); }
.words { font-size: 24px; fill: var(--ink); text-anchor: middle; }
.cell { fill: var(--ink); } .link { fill: var(--c0); }
.right { text-anchor: end; } .grid { stroke: var(--grid); }
.limit { stroke: var(--bad); stroke-dasharray: 5 3; }
.Restarts { stroke: var(--orange); stroke-dasharray: 2 3; }
.Deploys { stroke: var(--blue); stroke-dasharray: 2 3; }
.line { fill: none; stroke-width: 1.5; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); }
.k0 { fill: var(--c0); } .k1 { fill: var(--c1); } .k2 { fill: var(--c2); } .k3 { fill: var(--c3); }
"""


def picture(document: Mapping[str, Any]) -> str:
    """Return the picture of a dashboard's JSON."""
    panels = document["panels"]
    right = max(one["gridPos"]["x"] + one["gridPos"]["w"] for one in panels) * _COLUMN
    bottom = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels) * _ROW
    width, height = right + _GAP, bottom + _GAP
    svg = element(
        None, "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}",
        width=width, height=height, role="img", aria_label=document["title"],
    )  # fmt: skip
    element(svg, "style", _STYLE)
    element(svg, "rect", class_="back", width=width, height=height)
    marks = [one["name"] for one in document["annotations"]["list"]]
    for panel in panels:
        _panel(svg, panel, marks)
    return ET.tostring(svg, encoding="unicode") + "\n"


def _panel(svg: ET.Element, panel: Mapping[str, Any], marks: Sequence[str]) -> None:
    grid = panel["gridPos"]
    x, y = grid["x"] * _COLUMN + _GAP, grid["y"] * _ROW + _GAP
    width, height = grid["w"] * _COLUMN - _GAP, grid["h"] * _ROW - _GAP
    card = element(svg, "g", transform=f"translate({x} {y})")
    element(card, "rect", class_="card", width=width, height=height, rx=4)
    element(card, "title", panel["description"])
    element(card, "text", panel["title"], class_="title", x=10, y=17)
    if panel["type"] == "stat":
        said = _legend(panel["targets"][0]["legendFormat"])
        element(card, "text", said, class_="words", x=width / 2, y=height / 2 + 10)
    elif panel["type"] == "table":
        _table(card, panel)
    else:
        _chart(card, panel, marks, width, height)


def _table(card: ET.Element, panel: Mapping[str, Any]) -> None:
    links = [link["title"] for link in panel["fieldConfig"]["defaults"].get("links", ())]
    for number, (label, value) in enumerate((*_CELLS, ("links", ", ".join(links)))):
        y = _TITLE + 22 + 24 * number
        element(card, "text", label, x=14, y=y)
        element(card, "text", value, class_="link" if label == "links" else "cell", x=110, y=y)


def _chart(
    card: ET.Element, panel: Mapping[str, Any], marks: Sequence[str], width: float, height: float
) -> None:
    defaults = panel["fieldConfig"]["defaults"]
    steps = defaults.get("thresholds", {}).get("steps", ())
    limit = steps[-1]["value"] if steps else None
    lines = [_figures(panel, target, limit) for target in panel["targets"]]
    top = rounded(max([*(max(line) for line in lines), limit or 0.0]) * 1.05)
    left, right = _SIDE, width - 10
    legend = _legend_of(panel, left, right)
    low = height - _FOOT - _LINE * (1 + max(line for _, _, line in legend))

    def place(part: float, figure: float) -> tuple[float, float]:
        return left + (right - left) * part, low - (low - _TITLE - 6) * figure / top

    for figure in (0.0, top / 2, top):
        _, y = place(0, figure)
        element(card, "line", class_="grid", x1=left, x2=right, y1=y, y2=y)
        element(card, "text", _shown(figure, defaults["unit"]), class_="right", x=left - 5, y=y + 4)
    for name in marks:
        for part in _MARKS.get(name, ()):
            x, _ = place(part, 0)
            element(card, "line", class_=name, x1=x, x2=x, y1=_TITLE, y2=low)
    if limit is not None:
        _, y = place(0, limit)
        element(card, "line", class_="limit", x1=left, x2=right, y1=y, y2=y)
    for number, (line, (text, x, row)) in enumerate(zip(lines, legend, strict=True)):
        points = (place(n / (_POINTS - 1), figure) for n, figure in enumerate(line))
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        element(card, "path", class_=f"line c{number % 4}", d=f"M{path}")
        y = low + _FOOT + 2 + _LINE * row
        element(card, "rect", class_=f"k{number % 4}", x=x, y=y - 5, width=10, height=3)
        element(card, "text", text, x=x + 14, y=y)


def _legend_of(panel: Mapping[str, Any], left: float, right: float) -> list[tuple[str, float, int]]:
    """Return what each line is, where that is said, and in which line of the legend."""
    found: list[tuple[str, float, int]] = []
    x, row = left, 0
    for target in panel["targets"]:
        text = _legend(target["legendFormat"])
        width = 14 + _LETTER * len(text)
        if x > left and x + width > right:
            x, row = left, row + 1
        found.append((text, x, row))
        x += width + 14
    return found


def _figures(
    panel: Mapping[str, Any], target: Mapping[str, Any], limit: float | None
) -> list[float]:
    """Return figures that are always the same: below the limit but for a while in the middle."""
    defaults = panel["fieldConfig"]["defaults"]
    if "min" not in defaults:  # a difference that is 0 in a healthy job
        return [0.0] * _POINTS
    level = limit * 0.45 if limit else _LEVELS[defaults["unit"]]
    shift = crc32(f"{panel['title']} {target['legendFormat']}".encode()) % 1000 / 40
    level *= 0.55 + shift % 1
    most = 1.0 if defaults["unit"] == "percentunit" else math.inf
    waves = (_wave(n / _POINTS, shift, bool(limit)) for n in range(_POINTS))
    return [min(level * wave, most) for wave in waves]


def _wave(part: float, shift: float, has_limit: bool) -> float:
    calm = 0.75 + 0.12 * math.sin(9 * part + shift) + 0.08 * math.sin(31 * part + 2 * shift)
    peak = math.exp(-(((part - 0.62) / 0.07) ** 2))
    return calm + (1.6 if has_limit else 0.5) * peak


def _shown(figure: float, unit: str) -> str:
    if unit == "percentunit":
        return f"{100 * figure:.3g}%"
    return short(figure) + {"s": " s", "bytes": "B"}.get(unit, "")


def _legend(text: str) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: _LABELS.get(found[1], found[1]), text)


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(json.loads(dashboard.text())), encoding="utf-8")
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
