"""The picture of a workflow as SVG: layers from the triggers down, with ports named at their edges. Pure.

Colours are attributes, not a style sheet, so that pages with a strict policy show them, and are chosen to be readable
on light and on dark ground; the ground itself is left open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from xml.sax.saxutils import escape, quoteattr

from denizen.domain.record import record
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_nodes import CASE, ON_ERROR, THEN

BOX_WIDTH, BOX_HEIGHT = 190, 52
GAP_ACROSS, GAP_DOWN, MARGIN = 30, 62, 24
LANE_WIDTH = 24
"""The room that an edge takes in the layers that it passes."""
SWEEPS = 8
COLOURS: Mapping[str, str] = {
    "trigger": "#1a7f4b",
    "condition": "#96590a",
    "action": "#1f62c0",
    "transform": "#7b46b3",
    "control": "#566072",
}
"""The colour of a box by the group of its type; white text on each has a contrast of 4.5 at least."""
OUTLINES: Mapping[str, str] = {"done": "#2fb573", "failed": "#e0483e", "waiting": "#e3a21a", "running": "#4f93ef"}
EDGE, LABEL = "#7c8595", "#475063"
_ARROW_HEAD = (
    '<defs><marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0L10 5L0 10z" fill="{EDGE}"/></marker></defs>'
)
MAX_NAME_CHARS, MAX_TYPE_CHARS, MAX_PORT_CHARS = 24, 28, 18
_PORT_NAMES: Mapping[str, str] = {THEN: "", ON_ERROR: "on error"}
_UNPRINTABLE = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@record(kw_only=True)
class PictureNode:
    """A box: its id, its type, and the group that gives its colour. `state` is how it went in a run: `done`, `failed`,
    `waiting`, `running` or `skipped`, empty where no run is shown.
    """

    id: str
    type: str
    group: str
    state: str = ""


@record(kw_only=True)
class PictureEdge:
    """An arrow between two boxes, by their ids. `port` is the name of the exit, empty for the usual one."""

    source: str
    target: str
    port: str = ""


@record
class _Spot:
    """A box, or the place at which an edge passes a layer. `x` is its middle."""

    layer: int
    width: int
    x: float = 0


_Lanes = Sequence[tuple[PictureEdge, Sequence[str]]]
"""The edges, each with the spots that it visits, from its source to its target."""


def draw_graph(title: str, nodes: Sequence[PictureNode], edges: Sequence[PictureEdge]) -> str:
    """Returns an SVG document. Raises ValueError where an edge leads to no node, or the edges go in a circle."""
    layers = find_layers([node.id for node in nodes], edges)
    spots = {node.id: _Spot(layers[node.id], BOX_WIDTH) for node in nodes}
    lanes: list[tuple[PictureEdge, Sequence[str]]] = []
    for number, edge in enumerate(edges):
        passed = range(layers[edge.source] + 1, layers[edge.target])
        names = [f"\0{number}:{layer}" for layer in passed]
        spots |= {name: _Spot(layer, LANE_WIDTH) for name, layer in zip(names, passed, strict=True)}
        lanes.append((edge, [edge.source, *names, edge.target]))
    placed = _place(_order(spots, lanes), spots, lanes)
    left = min((spot.x - spot.width / 2 for spot in placed.values()), default=0) - MARGIN
    placed = {name: _Spot(spot.layer, spot.width, spot.x - left) for name, spot in placed.items()}
    width = max((spot.x + spot.width / 2 for spot in placed.values()), default=BOX_WIDTH) + MARGIN
    height = 2 * MARGIN + (max(layers.values(), default=0) + 1) * (BOX_HEIGHT + GAP_DOWN) - GAP_DOWN
    drawn = [*_draw_edges(lanes, placed), *(_draw_box(node, placed[node.id]) for node in nodes)]
    shown = _clean(title)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
        f'height="{height}" role="img" aria-label={quoteattr(f"Workflow {shown}")} '
        'font-family="system-ui, -apple-system, Segoe UI, Roboto, sans-serif">'
    )
    return "\n".join([head, f"<title>{escape(shown)}</title>", _ARROW_HEAD, *drawn, "</svg>\n"])


def draw_workflow(workflow: Workflow, states: Mapping[str, str] | None = None) -> str:
    """Returns the picture of a workflow, or of a run of it, whose nodes have these states."""
    return draw_graph(
        workflow.name,
        [
            PictureNode(id=each.id, type=each.type, group=each.kind.group, state=(states or {}).get(each.id, ""))
            for each in workflow.nodes.values()
        ],
        [
            PictureEdge(
                source=each.source, target=each.target, port=_PORT_NAMES.get(each.port, each.port.removeprefix(CASE))
            )
            for each in workflow.edges
        ],
    )


def find_layers(nodes: Sequence[str], edges: Sequence[PictureEdge]) -> Mapping[str, int]:
    """Returns for each node how many others stand above it at most. Raises ValueError."""
    above: dict[str, set[str]] = {node: set() for node in nodes}
    for edge in edges:
        if edge.source not in above or edge.target not in above:
            raise ValueError(f"an edge from {edge.source!r} to {edge.target!r} leads to no node")
        above[edge.target].add(edge.source)
    layers: dict[str, int] = {}
    while len(layers) < len(above):
        ready = [node for node in above if node not in layers and above[node] <= layers.keys()]
        if not ready:
            raise ValueError("the edges go in a circle")
        layers |= {node: max((layers[each] + 1 for each in above[node]), default=0) for node in ready}
    return layers


def _order(spots: Mapping[str, _Spot], lanes: _Lanes) -> list[list[str]]:
    """Returns the spots of each layer, from left to right, so that few edges cross: each moves to the middle of those
    that it is joined with, in turn from above and from below.
    """
    rows: list[list[str]] = [[] for _ in range(max((spot.layer for spot in spots.values()), default=-1) + 1)]
    for name, spot in spots.items():
        rows[spot.layer].append(name)
    above, below = _find_neighbours(spots, lanes)
    for sweep in range(SWEEPS):
        near, order = (below, reversed(rows)) if sweep % 2 else (above, iter(rows))
        for row in order:
            rank = {name: index for each in rows for index, name in enumerate(each)}
            middles = {name: fmean(rank[each] for each in near[name]) if near[name] else rank[name] for name in row}
            row.sort(key=middles.__getitem__)
    return rows


def _place(rows: Sequence[Sequence[str]], spots: Mapping[str, _Spot], lanes: _Lanes) -> Mapping[str, _Spot]:
    """Returns the spots with their middles: near those that they are joined with, none upon another."""
    above, below = _find_neighbours(spots, lanes)
    x: dict[str, float] = {}
    for row in rows:
        x |= dict(zip(row, _spread([0.0] * len(row), [spots[name].width for name in row]), strict=True))
    for sweep in range(SWEEPS):
        near, order = (below, reversed(rows)) if sweep % 2 else (above, iter(rows))
        for row in order:
            wanted = [fmean(x[each] for each in near[name]) if near[name] else x[name] for name in row]
            x |= dict(zip(row, _spread(wanted, [spots[name].width for name in row]), strict=True))
    return {name: _Spot(spot.layer, spot.width, x[name]) for name, spot in spots.items()}


def _spread(wanted: Sequence[float], widths: Sequence[int]) -> list[float]:
    """Returns places nearest to the wanted ones, by their squares, at which things of these widths do not overlap."""
    offsets = [0.0]
    for before, after in pairwise(widths):
        offsets.append(offsets[-1] + (before + after) / 2 + GAP_ACROSS)
    blocks: list[tuple[float, int]] = []  # neighbours that touch: their common place, and how many they are
    for place, offset in zip(wanted, offsets, strict=False):
        mean, count = place - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, size = blocks.pop()
            mean, count = (mean * count + other * size) / (count + size), count + size
        blocks.append((mean, count))
    places = [mean for mean, count in blocks for _ in range(count)]
    return [place + offset for place, offset in zip(places, offsets, strict=False)]


def _find_neighbours(
    spots: Mapping[str, _Spot], lanes: _Lanes
) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    """Returns the spots right above each, and right below."""
    above: dict[str, list[str]] = {name: [] for name in spots}
    below: dict[str, list[str]] = {name: [] for name in spots}
    for _, visited in lanes:
        for upper, lower in pairwise(visited):
            above[lower].append(upper)
            below[upper].append(lower)
    return above, below


def _draw_edges(lanes: _Lanes, spots: Mapping[str, _Spot]) -> list[str]:
    """Returns the arrows, then their labels, which lie upon them. Those of one box leave and enter side by side."""
    arrows: list[str] = []
    labels: list[str] = []
    exits = _fan_out([(edge.source, visited[1], number) for number, (edge, visited) in enumerate(lanes)], spots)
    entries = _fan_out([(edge.target, visited[-2], number) for number, (edge, visited) in enumerate(lanes)], spots)
    for number, (edge, visited) in enumerate(lanes):
        points = [(spots[name].x, _top(spots[name])) for name in visited]
        x, y = exits[number], points[0][1] + BOX_HEIGHT
        path = f"M{x:.1f} {y:.1f}"
        for index, (_, top) in enumerate(points[1:], start=1):
            is_last = index == len(points) - 1
            next_x = entries[number] if is_last else points[index][0]
            bend = (top - y) / 2
            path += f"C{x:.1f} {y + bend:.1f} {next_x:.1f} {top - bend:.1f} {next_x:.1f} {top:.1f}"
            if index == 1 and edge.port:
                labels.append(_draw_label(edge.port, (x * 5 + next_x * 3) / 8, y + bend * 0.8))
            x, y = next_x, top
            if not is_last:
                y = top + BOX_HEIGHT
                path += f"V{y:.1f}"
        arrows.append(f'<path d="{path}" fill="none" stroke="{EDGE}" stroke-width="1.6" marker-end="url(#arrow)"/>')
    return arrows + labels


def _fan_out(ends: Sequence[tuple[str, str, int]], spots: Mapping[str, _Spot]) -> Mapping[int, float]:
    """Returns where each arrow meets its box. `ends` has the box, the next spot on the way, and the arrow's number."""
    by_box: dict[str, list[tuple[float, int]]] = {}
    for box, other, number in ends:
        by_box.setdefault(box, []).append((spots[other].x, number))
    found: dict[int, float] = {}
    for box, arrows in by_box.items():
        step = BOX_WIDTH / (len(arrows) + 1)
        for index, (_, number) in enumerate(sorted(arrows), start=1):
            found[number] = spots[box].x - BOX_WIDTH / 2 + step * index
    return found


def _draw_label(port: str, x: float, y: float) -> str:
    text = _shorten(port, MAX_PORT_CHARS)
    width = len(text) * 6.4 + 12
    return (
        f'<g><rect x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18" rx="9" fill="{LABEL}"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" font-size="11" fill="#fff" text-anchor="middle">{escape(text)}</text></g>'
    )


def _draw_box(node: PictureNode, spot: _Spot) -> str:
    left, top = spot.x - BOX_WIDTH / 2, _top(spot)
    outline = OUTLINES.get(node.state)
    stroke = f' stroke="{outline}" stroke-width="4"' if outline else ""
    faded = ' opacity="0.45"' if node.state == "skipped" else ""
    told = f"{node.id}: {node.type}" + (f", {node.state}" if node.state else "")
    texts = ((21, 14, "600", _shorten(node.id, MAX_NAME_CHARS)), (39, 11, "400", _shorten(node.type, MAX_TYPE_CHARS)))
    box = (
        f'<rect x="{left:.1f}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="8" '
        f'fill="{COLOURS.get(node.group, COLOURS["control"])}"{stroke}/>'
    )
    lines = [
        f'<text x="{spot.x:.1f}" y="{top + down}" font-size="{size}" font-weight="{weight}" fill="#fff" '
        f'text-anchor="middle">{escape(text)}</text>'
        for down, size, weight, text in texts
    ]
    return f"<g{faded}><title>{escape(_clean(told))}</title>{box}{''.join(lines)}</g>"


def _top(spot: _Spot) -> int:
    return MARGIN + spot.layer * (BOX_HEIGHT + GAP_DOWN)


def _shorten(text: str, limit_chars: int) -> str:
    shown = _clean(text)
    return shown if len(shown) <= limit_chars else f"{shown[: limit_chars - 1]}…"


def _clean(text: str) -> str:
    """Returns the text without what no XML document may hold."""
    return _UNPRINTABLE.sub("", text)
