"""Charts: lines over two linear axes as SVG that is readable on light and dark pages. No text comes from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Final

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 36, 48
"""The margins around the plot; names of lines stand right of it."""
COLORS: Final = ("#0b6bcb", "#c2410c", "#15803d", "#7e22ce")
DARK_COLORS: Final = ("#6cb2ff", "#fb923c", "#4ade80", "#c084fc")
TICKS: Final = 5
"""How many steps an axis has at most."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line through some points, from left to right."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """Some lines over the same axes, which both begin at 0."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]

    def svg(self) -> str:
        """The chart as one SVG document. Raises `ValueError` without points."""
        points = [point for line in self.lines for point in line.points]
        if not points:
            raise ValueError(f"{self.title}: no points")
        across, up = ticks(max(x for x, _ in points)), ticks(max(y for _, y in points))
        parts = [*self._axes(across, up), *self._lines(across[-1], up[-1])]
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">\n<title>{escape(self.title)}</title>\n'
        return head + style() + "\n".join(parts) + "\n</svg>\n"

    def _axes(self, across: Sequence[float], up: Sequence[float]) -> list[str]:
        parts = [text(LEFT, 20, self.title, "title")]
        for value in up:
            y = vertical(value, up[-1])
            parts.append(f'<path class="grid" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>')
            parts.append(text(LEFT - 8, y + 4, number(value), "end"))
        parts += [text(horizontal(value, across[-1]), HEIGHT - BOTTOM + 18, number(value), "middle") for value in across]
        parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, self.x, "middle"))
        parts.append(f'<text class="middle" transform="translate(14 {(TOP + HEIGHT - BOTTOM) / 2:g}) rotate(-90)">{escape(self.y)}</text>')
        return parts

    def _lines(self, right: float, top: float) -> list[str]:
        parts, places = [], label_places([vertical(line.points[-1][1], top) for line in self.lines if line.points])
        for index, line in enumerate(line for line in self.lines if line.points):
            places_of_points = [(horizontal(x, right), vertical(y, top)) for x, y in line.points]
            path = "L".join(f"{x} {y}" for x, y in places_of_points)
            parts.append(f'<path class="line c{index % len(COLORS)}" d="M{path}"/>')
            if len(places_of_points) <= 12:
                parts += [f'<circle class="c{index % len(COLORS)}" cx="{x}" cy="{y}" r="3"/>' for x, y in places_of_points]
            parts.append(text(WIDTH - RIGHT + 10, places[index] + 4, line.name, f"name c{index % len(COLORS)}"))
        return parts


def ticks(highest: float) -> list[float]:
    """The marks of an axis from 0 to at least that number, in steps of 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return [0.0, 1.0]
    unit = 10.0 ** floor(log10(highest / TICKS))
    step = next(factor * unit for factor in (1, 2, 5, 10) if highest / (factor * unit) <= TICKS)
    return [round(step * index, 10) for index in range(ceil(round(highest / step, 9)) + 1)]


def label_places(wanted: Sequence[float], distance: float = 15.0) -> list[float]:
    """Where names of lines stand, as near as possible to where they are wanted, without overlapping."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    places = list(wanted)
    for above, below in pairwise(order):
        places[below] = max(places[below], places[above] + distance)
    return places


def horizontal(value: float, right: float) -> float:
    """The place of a value on the horizontal axis, which ends with `right`."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * value / right, 1)


def vertical(value: float, top: float) -> float:
    """The place of a value on the vertical axis, which ends with `top`."""
    return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / top, 1)


def number(value: float) -> str:
    """A number for people, with commas and without needless zeros."""
    return f"{value:,.10g}"


def text(x: float, y: float, content: str, kind: str) -> str:
    """A line of text; `kind` is its class."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(content)}</text>'


def style() -> str:
    """The style of every chart. What belongs to a dark page is only used where the reader prefers one."""

    def colors(of: Sequence[str]) -> str:
        return "".join(f".line.c{index}{{stroke:{color}}}circle.c{index},.name.c{index}{{fill:{color}}}" for index, color in enumerate(of))

    return (
        "<style>text{font:12px sans-serif;fill:#3f4650}.title{font-size:14px;font-weight:600}"
        ".end{text-anchor:end}.middle{text-anchor:middle}"
        f".grid{{stroke:#8884}}.line{{fill:none;stroke-width:2}}{colors(COLORS)}"
        f"@media(prefers-color-scheme:dark){{text{{fill:#c9d1d9}}{colors(DARK_COLORS)}}}</style>\n"
    )
