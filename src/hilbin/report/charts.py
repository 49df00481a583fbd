"""Charts as inline SVG. Colors come from the page, so they follow its light or dark theme."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hilbin._arrays import Array
from hilbin.report.markup import Html, fill, join, number, percent

MOST_POINTS = 120
SIZE, SMALL = (340, 214), (210, 168)  # width and height
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 24, 38
SPARK_WIDTH, SPARK_HEIGHT = 108, 40


@dataclass(frozen=True, eq=False)
class Line:
    """A curve: linear between its points, or constant up to the next if ``stepped``."""

    x: Array
    y: Array
    style: str = "l0"
    stepped: bool = False


def ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Return about so many round numbers between ``low`` and ``high``."""
    raw = (high - low) / wanted
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 5, 10), key=lambda m: abs(m - raw / power))
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(k * step) + 0.0 for k in np.arange(first, last + 1)]  # + 0 rids -0 of its sign


def span(values: Sequence[Array]) -> tuple[float, float]:
    """Return the range of all values and zero, with some space around it."""
    low = min(0.0, *(float(v.min()) for v in values))
    high = max(0.0, *(float(v.max()) for v in values))
    if not high > low:
        return low - 1, high + 1
    pad = 0.06 * (high - low)
    return low - pad * (low < 0), high + pad * (high > 0)


def chart(
    lines: Sequence[Line],
    *,
    describe: str,
    labels: tuple[str, str],
    x: tuple[float, float],
    y: tuple[float, float],
    shares: tuple[bool, bool] = (False, False),
    size: tuple[int, int] = SIZE,
    extra: Callable[["Axes"], Html] | None = None,
) -> Html:
    """Draw curves between axes.

    ``shares`` says which axis is in per cent; ``extra`` draws what lies below the curves.
    """
    width, height = size
    axes = Axes(x, y, (LEFT, TOP, width - RIGHT, height - BOTTOM))
    drawn = join(
        fill('<path class="line {style}" d="{path}"/>', style=one.style, path=axes.path(one))
        for one in lines
    )
    return fill(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{describe}">'
        '{grid}{extra}{drawn}<text class="label" x="{left}" y="12">{y_label}</text>'
        '<text class="label end" x="{right}" y="{bottom}">{x_label}</text></svg>',
        w=width,
        h=height,
        describe=describe,
        grid=axes.grid(shares),
        extra=extra(axes) if extra else Html(""),
        drawn=drawn,
        left=4,
        right=width - RIGHT,
        bottom=height - 5,
        y_label=labels[1],
        x_label=labels[0],
    )


@dataclass(frozen=True)
class Axes:
    """The way from values to places in the picture."""

    x: tuple[float, float]
    y: tuple[float, float]
    box: tuple[float, float, float, float]

    def place(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return where points are drawn."""
        left, top, right, bottom = self.box
        across = left + (np.asarray(x) - self.x[0]) / (self.x[1] - self.x[0]) * (right - left)
        up = bottom - (np.asarray(y) - self.y[0]) / (self.y[1] - self.y[0]) * (bottom - top)
        return across, up

    def path(self, line: Line) -> str:
        """Return the commands that draw a curve, of at most 120 points."""
        keep = np.unique(np.linspace(0, line.x.size - 1, min(line.x.size, MOST_POINTS)).astype(int))
        across, up = self.place(line.x[keep], line.y[keep])
        if line.stepped:
            across, up = np.repeat(across, 2)[1:], np.repeat(up, 2)[:-1]
        return "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True))

    def band(self, x: Array, low: Array, high: Array) -> Html:
        """Draw the space between two curves."""
        there = self.path(Line(x, low))
        back = self.path(Line(x[::-1], high[::-1]))
        return fill('<path class="band" d="{d}Z"/>', d=there + "L" + back[1:])

    def grid(self, shares: tuple[bool, bool]) -> Html:
        """Draw lines and numbers at round values."""
        left, _, right, bottom = self.box
        across = max(2, int((right - left) // 64))
        parts = []
        for value in ticks(*self.y):
            at = float(self.place(np.array(self.x[0]), np.array(value))[1])
            parts.append(
                fill(
                    '<path class="{kind}" d="M{left},{at}H{right}"/>'
                    '<text class="tick end" x="{x}" y="{y}">{text}</text>',
                    kind="zero" if value == 0 else "rule",
                    left=left,
                    right=right,
                    at=f"{at:.1f}",
                    x=left - 6,
                    y=f"{at + 3.5:.1f}",
                    text=percent(value, 0) if shares[1] else number(value),
                )
            )
        for value in ticks(*self.x, across):
            at = float(self.place(np.array(value), np.array(self.y[0]))[0])
            parts.append(
                fill(
                    '<path class="rule" d="M{at},{bottom}v4"/>'
                    '<text class="tick mid" x="{at}" y="{y}">{text}</text>',
                    at=f"{at:.1f}",
                    bottom=bottom,
                    y=bottom + 16,
                    text=percent(value, 0) if shares[0] else number(value),
                )
            )
        return join(parts)


def spark(x: Array, y: Array, level: float, describe: str) -> Html:
    """Draw a small curve from 0 to 1 both ways, with the space below it and a dashed level."""
    axes = Axes((0, 1), (0, 1), (1, 2, SPARK_WIDTH - 1, SPARK_HEIGHT - 2))
    path = axes.path(Line(x, y))
    end, floor = f"{float(axes.place(x[-1:], y[-1:])[0][0]):.1f}", SPARK_HEIGHT - 2
    return fill(
        '<svg class="spark" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" '
        'aria-label="{describe}"><path class="frame" d="M1,2H{right}V{floor}H1Z"/>'
        '<path class="area" d="{path}L{end},{floor}H1Z"/><path class="line l0" d="{path}"/>'
        '<path class="line ref" d="M1,{level}H{right}"/></svg>',
        w=SPARK_WIDTH,
        h=SPARK_HEIGHT,
        right=SPARK_WIDTH - 1,
        floor=floor,
        path=Html(path),
        end=end,
        level=f"{float(axes.place(np.zeros(1), np.array([level]))[1][0]):.1f}",
        describe=describe,
    )
