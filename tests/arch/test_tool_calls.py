"""Tools run from one place only: `Toolset.call` is called by the gate and by nobody else (promise 2)."""

import ast
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "denizen"

GATE = ("engine/gate/executor.py", "tool.toolset")

OTHER_CALLS = {
    ("engine/loop/loop.py", "steps"): "Steps.call: each call of a step goes through the gate",
    ("engine/loop/planning.py", "steps"): "Steps.call, likewise",
    ("engine/loop/look_up.py", "steps"): "Steps.call, likewise",
    ("engine/workflows/runner.py", "self._steps"): "Steps.call, likewise, for the nodes of a workflow",
    ("adapters/models/request.py", "state"): "the id of a call in a provider's own state, a text",
    ("adapters/models/reply.py", "state"): "likewise",
}
"""Everything else in the source that is called `call`, with what it is. New ones are placed here by a human."""

_BY_NAME = {"getattr", "hasattr", "attrgetter", "methodcaller"}


def find_uses(source: str) -> Iterator[str]:
    """The receivers of `.call`, called or handed on. `x.call.id` reads a field, which a method does not have."""
    tree = ast.parse(source)
    fields = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=receiver, attr="call") if id(node) not in fields:
                yield ast.unparse(receiver)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _BY_NAME:
                if any(isinstance(each, ast.Constant) and each.value == "call" for each in node.args):
                    yield ast.unparse(node)
            case _:
                pass


@pytest.mark.proves("TW2", "P2")
def test_toolset_call_has_exactly_one_caller() -> None:
    uses = [
        (path.relative_to(SOURCE).as_posix(), receiver)
        for path in sorted(SOURCE.rglob("*.py"))
        for receiver in find_uses(path.read_text(encoding="utf-8"))
    ]
    assert uses.count(GATE) == 1
    unplaced = {use for use in uses if use != GATE and use not in OTHER_CALLS}
    assert sorted(unplaced) == [], "a tool runs through ToolExecutor.run; what is no toolset is named in OTHER_CALLS"
    assert sorted(set(OTHER_CALLS) - set(uses)) == [], "these are gone: take them out of OTHER_CALLS"


def test_every_way_to_call_a_toolset_beside_the_gate_is_found() -> None:
    source = dedent("""
        await toolset.call(call, scope)
        run = toolset.call
        Toolset.call(toolset, call, scope)
        super().call(call, scope)
        getattr(toolset, "call")(call, scope)
        operator.methodcaller("call", call, scope)(toolset)
        name = step.call.id
        self.recall()
    """)
    assert sorted(find_uses(source)) == [
        "Toolset",
        "getattr(toolset, 'call')",
        "operator.methodcaller('call', call, scope)",
        "super()",
        "toolset",
        "toolset",
    ]
