"""Pictures of figures over time, as SVG: axes, bars, lines and marks; every text is escaped."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from xml.etree import ElementTree as ET

from .period import JobEvent

WIDTH, HEIGHT = 960, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 8, 22, 20
_WORD = 90
"""Pixels that the words of a mark, or of an axis, need."""
_STEPS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What no HTML may contain (the standard's "noncharacters and controls")."""


def element(
    parent: ET.Element | None, name: str, text: object = "", /, **attributes: object
) -> ET.Element:
    """Return a new element of ``parent``. ``class_`` is the attribute class, ``a_b`` is a-b."""
    named = {key.rstrip("_").replace("_", "-"): _clean(value) for key, value in attributes.items()}
    made = ET.Element(name, named) if parent is None else ET.SubElement(parent, name, named)
    made.text = _clean(text)
    return made


def _clean(value: object) -> str:
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return _CONTROLS.sub("\ufffd", text)


@dataclass(frozen=True)
class Scale:
    """Where times and figures are in a picture."""

    begin: datetime
    end: datetime
    top: float

    def x(self, time: datetime) -> float:
        """Return the place of a time, from the left."""
        part = (time - self.begin) / max(self.end - self.begin, timedelta(seconds=1))
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * min(max(part, 0.0), 1.0)

    def y(self, figure: float) -> float:
        """Return the place of a figure, from above."""
        room = HEIGHT - _TOP - _BOTTOM
        return _TOP + room * (1 - min(max(figure / self.top, 0.0), 1.0))


def panel(
    parent: ET.Element, title: str, scale: Scale, marks: Sequence[JobEvent], *, words: bool
) -> ET.Element:
    """Return a picture with its axes and with the marks; with ``words`` the marks say what."""
    svg = element(
        parent, "svg", viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=title,
        width=WIDTH, height=HEIGHT,
    )  # fmt: skip
    element(svg, "title", title)
    for figure in (0.0, scale.top / 2, scale.top):
        y = scale.y(figure)
        element(svg, "line", class_="grid", x1=_LEFT, x2=WIDTH - _RIGHT, y1=y, y2=y)
        element(svg, "text", short(figure), class_="right", x=_LEFT - 6, y=y + 4)
    for time, text in times(scale.begin, scale.end):
        x = scale.x(time)
        element(svg, "line", class_="grid", x1=x, x2=x, y1=_TOP, y2=HEIGHT - _BOTTOM)
        is_cut = x > WIDTH - _WORD / 2
        place = {"class_": "right", "x": WIDTH} if is_cut else {"class_": "centre", "x": x}
        element(svg, "text", text, y=HEIGHT - 6, **place)
    said = 0.0
    for mark in marks:
        x = scale.x(mark.time)
        line = element(
            svg, "line", class_=f"mark {mark.kind}", x1=x, x2=x, y1=_TOP - 6, y2=HEIGHT - _BOTTOM
        )
        element(line, "title", f"{mark.time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC: {mark.text}")
        if words and x > said:
            text = mark.text.partition(":")[0].partition(",")[0]
            side = "right" if x > WIDTH - _WORD else "left"
            element(svg, "text", text, class_=f"mark {mark.kind} {side}", x=x, y=12)
            said = x + _WORD
    return svg


def line(svg: ET.Element, scale: Scale, points: Sequence[tuple[datetime, float]]) -> None:
    """Draw a line through the points."""
    if points:
        places = " L".join(f"{scale.x(time):.1f} {scale.y(figure):.1f}" for time, figure in points)
        element(svg, "path", class_="line", d=f"M{places}")


def bar(
    svg: ET.Element, scale: Scale, span: tuple[datetime, float], ends: tuple[float, float],
    kind: str, text: str,
) -> None:  # fmt: skip
    """Draw a bar from a time on, for so many seconds, between two figures."""
    left, right = scale.x(span[0]), scale.x(span[0] + timedelta(seconds=span[1]))
    low, high = scale.y(ends[0]), scale.y(ends[1])
    width = max(right - left - 0.5, 0.5)
    # A figure that is there is seen.
    made = element(
        svg, "rect", class_=kind, x=left, y=min(high, low - 1), width=width,
        height=max(low - high, 1.0),
    )  # fmt: skip
    element(made, "title", text)


def rounded(most: float) -> float:
    """Return a round figure that is not below ``most``."""
    if most <= 0:
        return 1.0
    power: float = 10.0 ** floor(log10(most))
    return next(step * power for step in (1, 2, 3, 5, 8, 10) if step * power >= most * 0.9999)


def short(figure: float) -> str:
    """Return a figure in few letters: 950, 1.5k, 20M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if figure >= size:
            return f"{figure / size:.3g}{letter}"
    return f"{figure:.3g}"


def times(begin: datetime, end: datetime) -> list[tuple[datetime, str]]:
    """Return at most nine round times of a period and how they are written, in UTC."""
    length = (end - begin).total_seconds()
    step = next((step for step in _STEPS if length / step <= 8), 0) or 86_400 * ceil(
        length / 691_200
    )
    first = ceil(begin.timestamp() / step) * step
    form = (
        "%H:%M:%S"
        if step < 60
        else "%H:%M"
        if step < 86_400 and length <= 86_400
        else "%d %b %H:%M"
    )
    form = "%d %b" if step >= 86_400 else form
    at = [datetime.fromtimestamp(first + step * n, UTC) for n in range(9)]
    return [(time, f"{time:{form}}") for time in at if time < end or time == begin]
