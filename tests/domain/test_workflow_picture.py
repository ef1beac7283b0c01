"""The picture of a workflow: whatever the graph, boxes lie apart, arrows lead down, and texts are only texts."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from denizen.domain.workflow_picture import (
    BOX_HEIGHT,
    BOX_WIDTH,
    COLOURS,
    EDGE,
    LABEL,
    PictureEdge,
    PictureNode,
    draw_graph,
    find_layers,
)

SVG = "{http://www.w3.org/2000/svg}"


def node(key: str, kind: str = "set", group: str = "transform", state: str = "") -> PictureNode:
    return PictureNode(id=key, type=kind, group=group, state=state)


def edge(source: str, target: str, port: str = "") -> PictureEdge:
    return PictureEdge(source=source, target=target, port=port)


def read_boxes(svg: str) -> list[tuple[float, float]]:
    """The left upper corners of the boxes, in the order of the nodes."""
    rects = [group.find(f"{SVG}rect") for group in ET.fromstring(svg).findall(f"{SVG}g")]
    boxes = [rect for rect in rects if rect is not None and rect.get("height") == str(BOX_HEIGHT)]
    return [(float(rect.attrib["x"]), float(rect.attrib["y"])) for rect in boxes]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[PictureNode], list[PictureEdge]]:
    count = draw(st.integers(1, 12))
    pairs = list(combinations(range(count), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=24)) if pairs else []
    order = draw(st.permutations(range(count)))
    return [node(f"n{key}") for key in order], [edge(f"n{a}", f"n{b}", "else" if a % 2 else "") for a, b in chosen]


@given(graphs())
def test_boxes_lie_apart_within_the_picture_and_arrows_lead_down(
    graph: tuple[list[PictureNode], list[PictureEdge]],
) -> None:
    nodes, edges = graph
    svg = draw_graph("w", nodes, edges)
    root, boxes = ET.fromstring(svg), read_boxes(svg)
    assert len(boxes) == len(nodes)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert all(x >= 0 and y >= 0 and x + BOX_WIDTH <= width and y + BOX_HEIGHT <= height for x, y in boxes)
    for (x, y), (other_x, other_y) in combinations(boxes, 2):
        assert y != other_y or abs(x - other_x) >= BOX_WIDTH
    tops = {each.id: y for each, (_, y) in zip(nodes, boxes, strict=True)}
    assert all(tops[each.source] + BOX_HEIGHT < tops[each.target] for each in edges)
    paths = [path.attrib["d"] for path in root.findall(f"{SVG}path")]
    assert len(paths) == len(edges)
    for path in paths:
        ends = [float(part.split()[-1]) for part in re.findall(r"[MC][^MCV]*", path)]
        assert all(upper < lower for upper, lower in pairwise(ends))


def test_a_long_arrow_passes_beside_the_boxes_of_the_layers_between() -> None:
    nodes = [node("a"), node("b"), node("c")]
    svg = draw_graph("w", nodes, [edge("a", "b"), edge("b", "c"), edge("a", "c")])
    (_, _), (left, _), (_, _) = read_boxes(svg)
    [through] = [float(match) for match in re.findall(r"([\d.]+) [\d.]+V", svg)]
    assert not left <= through <= left + BOX_WIDTH


def test_branches_leave_in_the_order_of_their_targets_and_have_their_names() -> None:
    nodes = [node("ask", "switch", "condition"), *(node(name, "send_message", "action") for name in ("x", "y", "z"))]
    svg = draw_graph("w", nodes, [edge("ask", name, f"case {name}") for name in ("x", "y", "z")])
    starts = [float(match) for match in re.findall(r'd="M([\d.]+) [\d.]+C', svg)]
    assert starts == sorted(starts) and len(set(starts)) == 3
    assert [f">case {name}<" in svg for name in ("x", "y", "z")] == [True] * 3
    assert COLOURS["condition"] in svg and COLOURS["action"] in svg


def test_texts_of_others_are_only_texts_and_long_ones_are_shortened() -> None:
    bad = '<script>alert("1")</script>\x00\x1b]'
    svg = draw_graph(bad, [node(bad, bad), node("n" * 60)], [edge(bad, "n" * 60, bad)])
    assert "<script" not in svg and "\x00" not in svg and "\x1b" not in svg
    root = ET.fromstring(svg)
    assert root.attrib["aria-label"] == 'Workflow <script>alert("1")</script>]'
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg",
        "title",
        "defs",
        "marker",
        "path",
        "g",
        "rect",
        "text",
    }
    texts = [each.text or "" for each in root.iter(f"{SVG}text")]
    assert max(map(len, texts)) <= 28 and any(text.endswith("…") for text in texts)


def test_a_run_is_shown_at_its_boxes() -> None:
    svg = draw_graph("w", [node("a", state="done"), node("b", state="failed"), node("c", state="skipped")], [])
    assert ("a: set, done" in svg, "b: set, failed" in svg, svg.count('stroke-width="4"')) == (True, True, 2)
    assert svg.count('opacity="0.45"') == 1


@pytest.mark.parametrize("edges", [[edge("a", "b"), edge("b", "a")], [edge("a", "x")]])
def test_circles_and_arrows_into_nowhere_are_refused(edges: list[PictureEdge]) -> None:
    with pytest.raises(ValueError, match=r"circle|no node"):
        find_layers(["a", "b"], edges)


def luminance(colour: str) -> float:
    parts = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_can_be_read_on_their_boxes_and_arrows_on_light_and_dark_ground() -> None:
    assert all(contrast(colour, "#ffffff") >= 4.5 for colour in (*COLOURS.values(), LABEL))
    for ground in ("#ffffff", "#1e1f22"):
        assert contrast(EDGE, ground) >= 3
        assert all(contrast(colour, ground) >= 2 for colour in COLOURS.values())
