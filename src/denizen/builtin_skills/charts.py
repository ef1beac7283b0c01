"""Charts drawn as pictures with Matplotlib, in twenty kinds.

`KINDS` says how each kind is drawn and what its data must be like; `draw_chart` is the tool.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any, Literal, get_args

from denizen.builtin_skills.text_rendering import remove_emoji
from denizen.skill import JsonObject, Param, Skill, Tier, ToolContext, ToolError, ToolOutput

Axes = Any
"""Matplotlib's axes, whose types are as dynamic as its arguments."""

COLOURS = (
    "#3b6fb6",
    "#e08a1e",
    "#3f9e6a",
    "#c8453b",
    "#7f62b3",
    "#8c6d4f",
    "#d66fae",
    "#6b7785",
    "#b5a62b",
    "#2fa8b8",
    "#27496d",
    "#a83279",
)
_UP, _DOWN, _TOTAL = COLOURS[2], COLOURS[3], COLOURS[0]
_MANY = 12
"""More labels than this are drawn slanted."""
_MOST_LABELS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """The data of a chart. Every tuple except `labels` has one entry for each series."""

    series: Sequence[tuple[str, Sequence[float]]]
    labels: Sequence[str]
    xs: Sequence[Sequence[float]]
    sizes: Sequence[Sequence[float]]
    title: str = ""
    x_name: str = ""
    y_name: str = ""


@dataclass(frozen=True, slots=True)
class ChartKind:
    """A kind of chart: the function that draws it, and what its data must be like.

    `is_labelled`: labels belong to values. `is_aligned`: all series have equally many values. `is_share`: values are
    parts of a whole. `is_single`: there is one series only.
    """

    draw: Callable[[Axes, Chart], None]
    is_labelled: bool = True
    is_aligned: bool = True
    is_share: bool = False
    is_single: bool = False
    is_polar: bool = False


def _line(axes: Axes, chart: Chart) -> None:
    for at, (name, values) in enumerate(chart.series):
        axes.plot(chart.xs[at] or range(len(values)), values, marker="o", ms=4, lw=2.2, color=_colour(at), label=name)
    _finish(axes, chart, ticks=not any(chart.xs))


def _step(axes: Axes, chart: Chart) -> None:
    for at, (name, values) in enumerate(chart.series):
        axes.step(range(len(values)), values, where="mid", lw=2.2, color=_colour(at), label=name)
    _finish(axes, chart)


def _area(axes: Axes, chart: Chart) -> None:
    for at, (name, values) in enumerate(chart.series):
        axes.plot(range(len(values)), values, lw=2, color=_colour(at), label=name)
        axes.fill_between(range(len(values)), values, color=_colour(at), alpha=0.25)
    _finish(axes, chart)


def _stacked_area(axes: Axes, chart: Chart) -> None:
    names, values = zip(*chart.series, strict=True)
    axes.stackplot(range(len(values[0])), *values, labels=names, colors=COLOURS, alpha=0.9)
    _finish(axes, chart)


def _bar(axes: Axes, chart: Chart) -> None:
    width = 0.8 / len(chart.series)
    for at, (name, values) in enumerate(chart.series):
        places = [n - 0.4 + width * (at + 0.5) for n in range(len(values))]
        axes.bar(places, values, width * 0.94, color=_colour(at), label=name)
    _finish(axes, chart)


def _horizontal_bar(axes: Axes, chart: Chart) -> None:
    height = 0.8 / len(chart.series)
    for at, (name, values) in enumerate(chart.series):
        places = [n - 0.4 + height * (at + 0.5) for n in range(len(values))]
        axes.barh(places, values, height * 0.94, color=_colour(at), label=name)
    axes.set_yticks(range(len(chart.labels)), chart.labels)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)
    _legend(axes, chart)


def _stacked_bar(axes: Axes, chart: Chart) -> None:
    above = [0.0] * len(chart.labels)
    below = [0.0] * len(chart.labels)
    for at, (name, values) in enumerate(chart.series):
        bottoms = [high if value >= 0 else low for value, high, low in zip(values, above, below, strict=True)]
        axes.bar(range(len(values)), values, 0.75, bottom=bottoms, color=_colour(at), label=name)
        above = [high + max(value, 0) for high, value in zip(above, values, strict=True)]
        below = [low + min(value, 0) for low, value in zip(below, values, strict=True)]
    _finish(axes, chart)


def _lollipop(axes: Axes, chart: Chart) -> None:
    for at, (name, values) in enumerate(chart.series):
        places = [n + 0.15 * (at - (len(chart.series) - 1) / 2) for n in range(len(values))]
        axes.vlines(places, 0, values, color=_colour(at), lw=2)
        axes.plot(places, values, "o", ms=9, color=_colour(at), label=name)
    axes.axhline(0, color="#888888", lw=0.8)
    _finish(axes, chart)


def _scatter(axes: Axes, chart: Chart) -> None:
    for at, (name, values) in enumerate(chart.series):
        axes.scatter(chart.xs[at] or range(len(values)), values, s=45, color=_colour(at), alpha=0.8, label=name)
    _finish(axes, chart, ticks=False)


def _bubble(axes: Axes, chart: Chart) -> None:
    largest = max((abs(size) for sizes in chart.sizes for size in sizes), default=1.0) or 1.0
    for at, (name, values) in enumerate(chart.series):
        sizes = [60 + 1500 * abs(size) / largest for size in chart.sizes[at]] or [300.0] * len(values)
        axes.scatter(
            chart.xs[at] or range(len(values)),
            values,
            s=sizes,
            color=_colour(at),
            alpha=0.55,
            edgecolor="white",
            label=name,
        )
    axes.margins(0.15)
    _finish(axes, chart, ticks=False)


def _histogram(axes: Axes, chart: Chart) -> None:
    most = max(len(values) for _, values in chart.series)
    count = min(max(math.ceil(math.log2(most)) + 1, 5), 40)  # Sturges' rule
    low, high = min(min(values) for _, values in chart.series), max(max(values) for _, values in chart.series)
    bins = [low + (high - low) * n / count for n in range(count + 1)] if high > low else count
    for at, (name, values) in enumerate(chart.series):
        axes.hist(values, bins=bins, color=_colour(at), alpha=0.7, label=name, edgecolor="white")
    _finish(axes, chart, ticks=False)


def _box(axes: Axes, chart: Chart) -> None:
    drawn = axes.boxplot([values for _, values in chart.series], patch_artist=True)
    for at, patch in enumerate(drawn["boxes"]):
        patch.set(facecolor=_colour(at), alpha=0.6)
    _name_groups(axes, chart)


def _violin(axes: Axes, chart: Chart) -> None:
    drawn = axes.violinplot([values for _, values in chart.series], showmedians=True)
    for at, body in enumerate(drawn["bodies"]):
        body.set(facecolor=_colour(at), alpha=0.6)
    _name_groups(axes, chart)


def _pie(axes: Axes, chart: Chart) -> None:
    _ring(axes, chart, width=None)


def _donut(axes: Axes, chart: Chart) -> None:
    _ring(axes, chart, width=0.42)


def _ring(axes: Axes, chart: Chart, *, width: float | None) -> None:
    (_, values), wedge = chart.series[0], {"edgecolor": "white", "linewidth": 1.5}
    if width:
        wedge |= {"width": width}
    axes.pie(
        values,
        labels=chart.labels,
        colors=[_colour(at) for at in range(len(values))],
        autopct="%1.0f%%",
        startangle=90,
        counterclock=False,
        wedgeprops=wedge,
        pctdistance=0.79 if width else 0.62,
    )


def _radar(axes: Axes, chart: Chart) -> None:
    angles = [2 * math.pi * n / len(chart.labels) for n in range(len(chart.labels))]
    for at, (name, values) in enumerate(chart.series):
        axes.plot([*angles, angles[0]], [*values, values[0]], lw=2, color=_colour(at), label=name)
        axes.fill([*angles, angles[0]], [*values, values[0]], color=_colour(at), alpha=0.15)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, chart.labels)
    _legend(axes, chart)


def _rose(axes: Axes, chart: Chart) -> None:
    (_, values), count = chart.series[0], len(chart.labels)
    angles = [2 * math.pi * n / count for n in range(count)]
    axes.bar(angles, values, width=2 * math.pi / count * 0.95, color=[_colour(at) for at in range(count)], alpha=0.85)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_xticks(angles, chart.labels)


def _heatmap(axes: Axes, chart: Chart) -> None:
    rows = [list(values) for _, values in chart.series]
    shown = axes.imshow(rows, aspect="auto", cmap="YlGnBu")
    axes.set_yticks(range(len(rows)), [name or str(at + 1) for at, (name, _) in enumerate(chart.series)])
    _name_ticks(axes, chart)
    axes.figure.colorbar(shown, ax=axes, label=chart.y_name)
    if len(rows) * len(rows[0]) <= 150:
        middle = (max(map(max, rows)) + min(map(min, rows))) / 2
        for y, row in enumerate(rows):
            for x, value in enumerate(row):
                axes.text(x, y, f"{value:.3g}", ha="center", va="center", color="white" if value > middle else "black")
    axes.set_xlabel(chart.x_name)


def _waterfall(axes: Axes, chart: Chart) -> None:
    """Draws each value as a change; the last bar is their sum."""
    values = chart.series[0][1]
    level = 0.0
    for place, value in enumerate(values):
        axes.bar(place, value, 0.7, bottom=level, color=_UP if value >= 0 else _DOWN)
        axes.plot([place - 0.35, place + 1.35], [level + value] * 2, color="#888888", lw=0.8)
        level += value
    axes.bar(len(values), level, 0.7, color=_TOTAL)
    axes.set_xticks(range(len(values) + 1), [*chart.labels, "total"], **_slant(len(values) + 1))
    axes.axhline(0, color="#888888", lw=0.8)
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylabel(chart.y_name)


def _funnel(axes: Axes, chart: Chart) -> None:
    values = chart.series[0][1]
    for place, value in enumerate(values):
        axes.barh(place, value, 0.85, left=-value / 2, color=_colour(place))
        share = f" ({value / values[0]:.0%})" if values[0] else ""
        axes.text(0, place, f"{value:.4g}{share}", ha="center", va="center", color="black", fontweight="bold")
    axes.set_yticks(range(len(values)), chart.labels)
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    for side in ("bottom", "left"):
        axes.spines[side].set_visible(False)


def _colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]


def _finish(axes: Axes, chart: Chart, *, ticks: bool = True) -> None:
    if ticks:
        _name_ticks(axes, chart)
    axes.grid(alpha=0.3)
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)
    _legend(axes, chart)


def _name_ticks(axes: Axes, chart: Chart) -> None:
    every = math.ceil(len(chart.labels) / _MOST_LABELS)
    places = range(0, len(chart.labels), every)
    axes.set_xticks(places, [chart.labels[place] for place in places], **_slant(len(places)))


def _slant(count: int) -> Mapping[str, object]:
    return {"rotation": 45, "ha": "right"} if count > _MANY else {}


def _name_groups(axes: Axes, chart: Chart) -> None:
    names = [name or str(at + 1) for at, (name, _) in enumerate(chart.series)]
    axes.set_xticks(range(1, len(names) + 1), names, **_slant(len(names)))
    axes.grid(axis="y", alpha=0.3)
    axes.set_xlabel(chart.x_name)
    axes.set_ylabel(chart.y_name)


def _legend(axes: Axes, chart: Chart) -> None:
    if any(name for name, _ in chart.series):
        axes.legend(frameon=False)


_FREE = {"is_labelled": False, "is_aligned": False}

KINDS: Mapping[str, ChartKind] = {
    "line": ChartKind(_line, is_aligned=False),
    "step": ChartKind(_step),
    "area": ChartKind(_area),
    "stacked_area": ChartKind(_stacked_area),
    "bar": ChartKind(_bar),
    "horizontal_bar": ChartKind(_horizontal_bar),
    "stacked_bar": ChartKind(_stacked_bar),
    "lollipop": ChartKind(_lollipop),
    "scatter": ChartKind(_scatter, **_FREE),
    "bubble": ChartKind(_bubble, **_FREE),
    "histogram": ChartKind(_histogram, **_FREE),
    "box": ChartKind(_box, **_FREE),
    "violin": ChartKind(_violin, **_FREE),
    "pie": ChartKind(_pie, is_share=True, is_single=True),
    "donut": ChartKind(_donut, is_share=True, is_single=True),
    "radar": ChartKind(_radar, is_polar=True),
    "rose": ChartKind(_rose, is_share=True, is_single=True, is_polar=True),
    "heatmap": ChartKind(_heatmap),
    "waterfall": ChartKind(_waterfall, is_single=True),
    "funnel": ChartKind(_funnel, is_share=True, is_single=True),
}


skill = Skill("charts", description="Charts drawn as pictures.")

KindName = Literal[
    "line",
    "step",
    "area",
    "stacked_area",
    "bar",
    "horizontal_bar",
    "stacked_bar",
    "lollipop",
    "scatter",
    "bubble",
    "histogram",
    "box",
    "violin",
    "pie",
    "donut",
    "radar",
    "rose",
    "heatmap",
    "waterfall",
    "funnel",
]
MAX_SERIES = 12
MAX_VALUES = 1000
_drawing = Lock()
"""Serialises drawing: Matplotlib shares state between threads."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values under a name. `x` places them (scatter, bubble, line); `sizes` is for bubbles."""

    values: list[float]
    name: str = ""
    x: list[float] = field(default_factory=list[float])
    sizes: list[float] = field(default_factory=list[float])


@skill.tool(tier=Tier.LIMITED, read_only=True)
def draw_chart(
    context: ToolContext,
    kind: KindName,
    series: Annotated[list[Series], Param("one for each line, group or ring", min_length=1, max_length=MAX_SERIES)],
    labels: Annotated[list[str], Param("of the values, in their order", max_length=MAX_VALUES)] = [],  # noqa: B006
    title: Annotated[str, Param(max_length=150)] = "",
    axes: Annotated[list[str], Param("names of the x and the y axis", max_length=2)] = [],  # noqa: B006
) -> ToolOutput:
    """Draws a chart as a picture. The user sees the picture."""
    del context
    _check(kind, series, labels)
    names = [*axes, "", ""]
    chart = Chart(
        series=tuple((_plain(each.name), tuple(each.values)) for each in series),
        labels=tuple(_plain(label) for label in labels) or tuple(str(n + 1) for n in range(len(series[0].values))),
        xs=tuple(tuple(each.x) for each in series),
        sizes=tuple(tuple(each.sizes) for each in series),
        title=_plain(title),
        x_name=_plain(names[0]),
        y_name=_plain(names[1]),
    )
    with _drawing:
        picture = _draw(kind, chart)
    shown: JsonObject = {"url": f"data:image/png;base64,{base64.b64encode(picture).decode()}", "title": title}
    return ToolOutput(f"The {kind.replace('_', ' ')} chart is shown to the user.", {"images": [shown]})


def _check(kind: KindName, series: Sequence[Series], labels: Sequence[str]) -> None:
    """Raises ToolError for data that would draw something else than was meant."""
    of = KINDS[kind]
    for number, each in enumerate(series, 1):
        where = f"series {number}" + (f" ({each.name})" if each.name else "")
        if not each.values or len(each.values) > MAX_VALUES:
            raise ToolError(f"{where} has {len(each.values)} values; there must be 1 to {MAX_VALUES}.")
        if any(value != value or abs(value) > 1e15 for value in each.values):  # noqa: PLR0124 - not a number
            raise ToolError(f"{where} has a value that is not an ordinary number.")
        for name, given in (("x", each.x), ("sizes", each.sizes)):
            if given and len(given) != len(each.values):
                raise ToolError(f"{where} has {len(each.values)} values but {len(given)} of {name}.")
        if of.is_labelled and labels and len(labels) != len(each.values):
            raise ToolError(f"{where} has {len(each.values)} values, but there are {len(labels)} labels.")
        if of.is_aligned and len(each.values) != len(series[0].values):
            raise ToolError(f"For {kind} all series must have equally many values; {where} has {len(each.values)}.")
        if of.is_share and (min(each.values) < 0 or sum(each.values) <= 0):
            raise ToolError(f"For {kind} values must not be negative, and not all zero.")
    if of.is_single and len(series) > 1:
        raise ToolError(f"A {kind} chart shows one series; {len(series)} were given.")
    if kind == "radar" and len(series[0].values) < 3:
        raise ToolError("A radar chart needs at least three values.")


def _draw(kind: KindName, chart: Chart) -> bytes:
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    of = KINDS[kind]
    style = {"font.size": 12, "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True}
    library: Any = mpl
    with library.rc_context(style):
        # Without pyplot, which keeps global state and may open a window.
        figure: Any = Figure(figsize=(9, 5.4), dpi=120, layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot(projection="polar" if of.is_polar else None)
        of.draw(axes, chart)
        if chart.title:
            figure.suptitle(chart.title, fontsize=16, fontweight="bold")
        out = io.BytesIO()
        figure.savefig(out, format="png")
    return out.getvalue()


def _plain(text: str) -> str:
    """Removes emoji, which Matplotlib cannot draw, and escapes its markup for formulas."""
    return remove_emoji(text)[:80].replace("$", r"\$")


assert set(get_args(KindName)) == set(KINDS)
