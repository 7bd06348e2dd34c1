"""Plots as SVG: bars of parts, dots of rounds, lines of growth; light, or dark for a dark page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from xml.etree import ElementTree as ET

from ytstream_tools.report.drawing import element, rounded, short

_WIDTH, _LEFT, _RIGHT = 930, 320, 60
_STEP, _BAR, _TOP, _BOTTOM = 22, 14, 34, 34
_HEIGHT = 260
_STYLE = """
.back { fill: #ffffff; } text { font: 12px system-ui, sans-serif; fill: #1d2129; }
.dim { fill: #667; } .grid { stroke: #e3e5ea; }
.c0 { fill: #0072b2; stroke: #0072b2; } .c1 { fill: #d55e00; stroke: #d55e00; }
.c2 { fill: #009e73; stroke: #009e73; } .c3 { fill: #b5892a; stroke: #b5892a; }
.c4 { fill: #a3528a; stroke: #a3528a; } .c5 { fill: #3d8fc4; stroke: #3d8fc4; }
.c6 { fill: #777777; stroke: #777777; } .c7 { fill: #c7a500; stroke: #c7a500; }
.c8 { fill: #5b4fb0; stroke: #5b4fb0; } .c9 { fill: #8a5a3c; stroke: #8a5a3c; }
path { fill: none !important; stroke-width: 1.8; } rect { stroke: none; }
.round { fill-opacity: .55; stroke: none; }
@media (prefers-color-scheme: dark) {
  .back { fill: #14171c; } text { fill: #e6e8ec; } .dim { fill: #9aa2ad; }
  .grid { stroke: #3a424d; }
  .c0 { fill: #5db5ec; stroke: #5db5ec; } .c1 { fill: #ff9d57; stroke: #ff9d57; }
  .c2 { fill: #4fd1a5; stroke: #4fd1a5; } .c3 { fill: #e8c35c; stroke: #e8c35c; }
  .c4 { fill: #df9dca; stroke: #df9dca; } .c8 { fill: #a99cff; stroke: #a99cff; }
  .c9 { fill: #c79a7c; stroke: #c79a7c; } .c6 { fill: #aaaaaa; stroke: #aaaaaa; } }
"""
"""Colours that colour-blind people can tell apart, on white and on black (Okabe and Ito)."""


@dataclass(frozen=True)
class Line:
    """A line of a plot with its label: parts of a bar, or single values."""

    label: str
    values: Sequence[tuple[float, int]]
    """Each with the number of its colour."""


def bars(title: str, unit: str, lines: Sequence[Line], legend: Sequence[str]) -> str:
    """Return a plot with a bar for each line, whose parts add up."""
    most = rounded(max((sum(value for value, _ in line.values) for line in lines), default=1.0))
    svg, place = _rows(title, unit, lines, most, legend)
    for number, line in enumerate(lines):
        at, y = 0.0, _y(number)
        for value, colour in line.values:
            left, right = place(at), place(at + value)
            made = element(
                svg, "rect", class_=f"c{colour}", x=left, y=y - _BAR / 2, width=right - left,
                height=_BAR,
            )  # fmt: skip
            name = f"{legend[colour]}: " if colour < len(legend) else ""
            element(made, "title", f"{name}{value:.2f} {unit}")
            at += value
        element(svg, "text", short(at), class_="dim", x=place(at) + 4, y=y + 4)
    return _text(svg)


def dots(title: str, unit: str, lines: Sequence[Line], legend: Sequence[str]) -> str:
    """Return a plot with a dot for each value: one is a round."""
    most = rounded(max((value for line in lines for value, _ in line.values), default=1.0))
    svg, place = _rows(title, unit, lines, most, legend)
    for number, line in enumerate(lines):
        for value, colour in line.values:
            made = element(
                svg, "circle", class_=f"round c{colour}", cx=place(value), cy=_y(number), r=5
            )
            element(made, "title", f"{value:.0f} {unit}")
    return _text(svg)


@dataclass(frozen=True)
class Series:
    """A line through points; x is drawn by its logarithm."""

    name: str
    colour: int
    points: Sequence[tuple[float, float]]


def growth(title: str, below: str, unit: str, series: Sequence[Series]) -> str:
    """Return a plot of how figures grow."""
    xs = sorted({x for one in series for x, _ in one.points}) or [1.0]
    most = rounded(max((y for one in series for _, y in one.points), default=1.0))
    svg = _svg(title, _HEIGHT)
    low, high = log10(xs[0]), log10(xs[-1])

    def x(value: float) -> float:
        part = (log10(value) - low) / (high - low) if high > low else 0.5
        return 70.0 + (_WIDTH - 70 - _RIGHT) * part

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - 2 * _BOTTOM) * (1 - value / most)

    for value in (0.0, most / 2, most):
        line = {"x1": 70, "x2": _WIDTH - _RIGHT, "y1": y(value), "y2": y(value)}
        element(svg, "line", class_="grid", **line)
        element(svg, "text", short(value), class_="dim", text_anchor="end", x=62, y=y(value) + 4)
    for value in xs:
        where = {"x": x(value), "y": _HEIGHT - 2 * _BOTTOM + 18}
        element(svg, "text", short(value), class_="dim", text_anchor="middle", **where)
    element(svg, "text", f"{below}; up: {unit}", class_="dim", x=70, y=_HEIGHT - _BOTTOM + 6)
    for one in series:
        places = " L".join(f"{x(a):.1f} {y(b):.1f}" for a, b in one.points)
        element(svg, "path", class_=f"c{one.colour}", d=f"M{places}")
        for a, b in one.points:
            made = element(svg, "circle", class_=f"c{one.colour}", cx=x(a), cy=y(b), r=3)
            element(made, "title", f"{one.name}: {short(a)}, {short(b)} {unit}")
    _legend(svg, [(one.colour, one.name) for one in series], _HEIGHT - 10)
    return _text(svg)


def _y(number: int) -> float:
    return _TOP + _STEP * (number + 0.5)


def _rows(
    title: str, unit: str, lines: Sequence[Line], most: float, legend: Sequence[str]
) -> tuple[ET.Element, _Place]:
    bottom = _TOP + _STEP * len(lines)
    svg = _svg(title, bottom + 2 * _BOTTOM)
    place = _Place(most)
    for value in (0.0, most / 2, most):
        line = {"x1": place(value), "x2": place(value), "y1": _TOP, "y2": bottom}
        element(svg, "line", class_="grid", **line)
        where = {"x": place(value), "y": bottom + 16}
        text = f"{short(value)} {unit}" if value == most else short(value)
        element(svg, "text", text, class_="dim", text_anchor="middle", **where)
    for number, one in enumerate(lines):
        where = {"x": _LEFT - 8, "y": _y(number) + 4}
        element(svg, "text", one.label, text_anchor="end", **where)
    drawn = {colour for one in lines for _, colour in one.values}
    names = [(colour, name) for colour, name in enumerate(legend) if colour in drawn]
    _legend(svg, names, bottom + 2 * _BOTTOM - 12)
    return svg, place


@dataclass(frozen=True)
class _Place:
    most: float

    def __call__(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * value / self.most


def _legend(svg: ET.Element, names: Sequence[tuple[int, str]], y: float) -> None:
    x = 12.0
    for colour, name in names:
        element(svg, "rect", class_=f"c{colour}", x=x, y=y - 9, width=10, height=10)
        element(svg, "text", name, x=x + 14, y=y)
        x += 30 + 6.6 * len(name)


def _svg(title: str, height: float) -> ET.Element:
    svg = element(
        None, "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {_WIDTH} {height}",
        width=_WIDTH, height=height, role="img", aria_label=title,
    )  # fmt: skip
    element(svg, "style", _STYLE)
    element(svg, "rect", class_="back", width=_WIDTH, height=height)
    element(svg, "text", title, x=12, y=18)
    return svg


def _text(svg: ET.Element) -> str:
    return ET.tostring(svg, encoding="unicode") + "\n"
