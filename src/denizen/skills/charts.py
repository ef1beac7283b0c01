"""Charts as pictures, in twenty kinds. What is drawn is decided in `chart_kinds`; here are the tool and its checks."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any, Literal, get_args

from denizen.skill import JsonObject, Param, Skill, Tier, ToolContext, ToolError, ToolOutput
from denizen.skills.chart_kinds import KINDS, Chart
from denizen.skills.lettering import remove_emoji

skill = Skill("charts", description="Charts drawn as pictures.")

KindName = Literal[
    "line", "step", "area", "stacked_area", "bar", "horizontal_bar", "stacked_bar", "lollipop", "scatter", "bubble",
    "histogram", "box", "violin", "pie", "donut", "radar", "rose", "heatmap", "waterfall", "funnel",
]  # fmt: skip
MAX_SERIES = 12
MAX_VALUES = 1000
_drawing = Lock()
"""Matplotlib keeps state that is shared by threads."""


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
        tuple((_plain(each.name), tuple(each.values)) for each in series),
        tuple(_plain(label) for label in labels) or tuple(str(n + 1) for n in range(len(series[0].values))),
        tuple(tuple(each.x) for each in series),
        tuple(tuple(each.sizes) for each in series),
        _plain(title), _plain(names[0]), _plain(names[1]),
    )  # fmt: skip
    with _drawing:
        picture = _draw(kind, chart)
    shown: JsonObject = {"url": f"data:image/png;base64,{base64.b64encode(picture).decode()}", "title": title}
    return ToolOutput(f"The {kind.replace('_', ' ')} chart is shown to the user.", {"images": [shown]})


def _check(kind: KindName, series: Sequence[Series], labels: Sequence[str]) -> None:
    """Raises ToolError for what would draw something else than what was meant."""
    of = KINDS[kind]
    for number, each in enumerate(series, 1):
        where = f"series {number}" + (f" ({each.name})" if each.name else "")
        if not each.values or len(each.values) > MAX_VALUES:
            raise ToolError(f"{where} has {len(each.values)} values; there must be 1 to {MAX_VALUES}.")
        if any(value != value or abs(value) > 1e15 for value in each.values):  # noqa: PLR0124 - not a number
            raise ToolError(f"{where} has a value that is no usual number.")
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
    """Without emoji, which Matplotlib cannot draw, and without its markup for formulas."""
    return remove_emoji(text)[:80].replace("$", r"\$")


assert set(get_args(KindName)) == set(KINDS)
