"""The table as a picture: a cell for each variant and group of faults, light and dark."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from xml.sax.saxutils import escape

from tests.faults.sweep.counts import GROUPS, Cell

_TOP, _WIDTH, _HEIGHT = 126, 66, 30
_LETTER, _RIGHT = 7.2, 64
"""Room for a letter, and for the end of the last heading.

DejaVu Sans, the font of a plain Linux, is wider than most others.
"""
_STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .held { fill: #d7f0dd } .repeats { fill: #fdf0c8 } .failed { fill: #f9c6c2 }
  .none { fill: #f1f2f4 } .ground { fill: #ffffff }
  .count { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .held { fill: #1b4429 } .repeats { fill: #54430d } .failed { fill: #7a2320 }
    .none { fill: #21262d } .ground { fill: #0d1117 }
  }
"""


def picture(
    rows: Mapping[str, Mapping[str, Cell]], control: Mapping[str, Mapping[str, Cell]]
) -> str:
    """Return the table as SVG: the number of cases in each cell, and its colour for what came.

    ``control`` has the cells of SPYT's example, by its mode.
    """
    total = sum(cell.cases for row in rows.values() for cell in row.values())
    rows = {**rows, **{f"SPYT's example, {mode}": row for mode, row in control.items()}}
    left = 20 + ceil(_LETTER * max(map(len, rows), default=0))
    width = left + _WIDTH * len(GROUPS) + _RIGHT
    height = _TOP + _HEIGHT * len(rows) + 44
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{total} cases by variant and fault</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="ground" width="{width}" height="{height}"/>',
        f'<text class="title" x="14" y="26">{total} faults, each at its request: '
        "cases in each cell</text>",
    ]
    for column, group in enumerate(GROUPS):
        x = left + column * _WIDTH + _WIDTH // 2
        parts.append(
            f'<text transform="translate({x},{_TOP - 8}) rotate(-40)">{escape(group)}</text>'
        )
    for line, (variant, row) in enumerate(rows.items()):
        y = _TOP + line * _HEIGHT
        parts.append(f'<text x="14" y="{y + 20}">{escape(variant)}</text>')
        for column, group in enumerate(GROUPS):
            parts.append(_cell(row.get(group, Cell()), left + column * _WIDTH, y))
    parts.append(_legend(_TOP + len(rows) * _HEIGHT + 26))
    return "\n".join([*parts, "</svg>", ""])


def kind_of(cell: Cell) -> str:
    """Return the class of a cell: what its colour says."""
    if not cell.cases:
        return "none"
    if cell.lost or cell.stalled or cell.failed or cell.ended:
        return "failed"
    return "repeats" if cell.repeated else "held"


def _cell(cell: Cell, x: int, y: int) -> str:
    kind = kind_of(cell)
    box = f'<rect class="{kind}" x="{x}" y="{y}" width="{_WIDTH - 3}" height="{_HEIGHT - 3}"/>'
    if not cell.cases:
        return box
    return f'{box}<text class="count" x="{x + _WIDTH // 2 - 1}" y="{y + 19}">{cell.cases}</text>'


def _legend(y: int) -> str:
    said = {
        "held": "nothing lost, nothing repeated",
        "repeats": "rows repeat, as at least once allows",
        "failed": "lost, repeated, stalled or ended",
        "none": "no case",
    }
    parts, x = [], 14
    for kind, text in said.items():
        parts.append(f'<rect class="{kind}" x="{x}" y="{y - 11}" width="14" height="14"/>')
        parts.append(f'<text x="{x + 20}" y="{y}">{escape(text)}</text>')
        x += 40 + ceil(_LETTER * len(text))
    return "".join(parts)
