"""An event of the log is a text of the code: reports of faults and reports for helpers pass it on without values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from scripts.shape import ROOT, list_sources

METHODS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})


def find_made_up_events(source: str) -> Iterator[int]:
    """Gives the lines whose event is put together where it is logged."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=logger)) if attr in METHODS:
                if "log" in ast.unparse(logger).lower() and not is_literal(node.args[attr == "log"]):
                    yield node.lineno
            case _:
                pass


def is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return is_literal(node.body) and is_literal(node.orelse)
    return isinstance(node, ast.Constant)


def test_all_events_are_literal() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in list_sources(ROOT, ["src/denizen"])
        for line in find_made_up_events(path.read_text(encoding="utf-8"))
    ]
    assert places == [], "write the event as a literal, with %s for values"


@pytest.mark.parametrize("call", ['_log.info(f"{x}")', "self._log.error(x)", 'log.log(10, "a" + b)'])
def test_an_event_that_is_put_together_is_seen(call: str) -> None:
    assert list(find_made_up_events(call)) == [1]
