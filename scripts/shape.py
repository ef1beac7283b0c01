"""Where the code is losing its shape: long modules and functions, many parameters, deep nesting, broad excepts.

    python -m scripts.shape             prints what it finds in src and scripts
    python -m scripts.shape --strict    the same, and exit code 1 when there is anything

The answer to a finding is a better cut, not a trick. `tests/arch/test_boundaries.py` holds the last kind by force.
"""

# ruff: noqa: E501 - a place and its reason stand on one line

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("src", "scripts")

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
MAX_NESTING = 4

BOUNDARIES: Mapping[str, str] = MappingProxyType(
    {
        "src/denizen/engine/turn.py::TurnRunner._run_steps": "turn: an unknown fault fails this turn, not its queue",
        "src/denizen/engine/loop/closing.py::TurnCloser.close_somehow": "turn: it ends even when its steps cannot be written",
        "src/denizen/engine/loop/routing.py::ModelRouter._sort": "routing: a fault is no usable route, so the stock one",
        "src/denizen/app/reload.py::Reloader.reload_and_tell": "job: a fault in a reload must not end the server",
        "src/denizen/engine/gate/decision.py::PolicyEngine.decide": "gate: whatever fails inside denies",
        "src/denizen/engine/gate/executor.py::_run_tool": "skill call: a fault in a tool is a result with a reference",
        "src/denizen/adapters/durable/run.py::perform": "job: an unknown fault is recorded as one with a reference",
        "src/denizen/adapters/durable/recovery.py::RunRecovery._run": "job: the next round tries again",
        "src/denizen/adapters/durable/recovery.py::RunRecovery._take_over": "job: one bad run must not keep the others waiting",
        "src/denizen/adapters/store/connections.py::ConnectionWorker.submit.work": "thread: raised again in the task that waits for it",
        "src/denizen/adapters/fleet/bus.py::FleetBus._tell": "message: one that cannot be taken must not end the bus",
        "src/denizen/adapters/fleet/bus.py::FleetBus._answer": "call: whoever asked gets an error, not silence",
        "src/denizen/adapters/discord/gateway/events.py::call_listener": "event: a listener fault must not end the account",
        "src/denizen/adapters/discord/client/http.py::_PendingRequest.run": "transfer: raised again in the task that waits",
        "src/denizen/engine/listener/interactions.py::TypedCommands._run": "command: a fault is a reply with a reference",
        "src/denizen/engine/listener/messages.py::MessageHandler._answer": "message: a fault is a reply with a reference",
        "src/denizen/engine/listener/background.py::_attempt": "job: a fault in it ends neither account nor neighbours",
        "src/denizen/engine/event_bus/bus.py::EventBus._deliver": "event: a fault fails its delivery to one listener only",
        "src/denizen/engine/outbox/outbox.py::DeliveryOutbox._send": "delivery: a fault fails this piece only",
        "src/denizen/app/skill_loading/registry.py::load_skill": "skill: a fault in its code leaves out this skill only",
        "src/denizen/app/accounts.py::AccountSupervisor._run_once": "account: a fault ends its connection only",
        "src/denizen/adapters/discord/voice/desk.py::VoiceDesk._run": "session: a fault ends its connection only",
        "src/denizen/app/backup_schedule.py::BackupSchedule._make": "job: a fault fails this backup, and owners hear of it",
        "src/denizen/adapters/mcp/server.py::McpServer._run_connection": "server: a fault ends its connection only",
        "src/denizen/adapters/mcp_server/server.py::report_faults": "request: an error with a reference, no internals",
        "src/denizen/web/http/errors.py::ErrorBoundary.__call__": "request: an unknown fault is an answer with a reference",
    }
)
"""The only functions that may catch everything and go on, each with its reason."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
_BROAD = frozenset({"Exception", "BaseException"})


@dataclass(frozen=True, slots=True)
class Finding:
    """Something at `place` (`path:line`, or `path::function` for a broad except) that is over its limit."""

    place: str
    says: str

    def __str__(self) -> str:
        return f"{self.place}: {self.says}"


def find_all(root: Path, folders: Sequence[str] = SOURCES) -> list[Finding]:
    """Everything over a limit in the Python files below these folders, in the order of paths and lines."""
    found: list[Finding] = []
    for path in list_sources(root, folders):
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        found += check_module(name, text)
        found += [
            Finding(place, "a broad except outside the boundaries")
            for place in find_broad_excepts(name, text)
            if place not in BOUNDARIES
        ]
    return found


def list_sources(root: Path, folders: Sequence[str] = SOURCES) -> list[Path]:
    """The Python files below these folders, sorted. Migrations are left out: they are a log, not a design."""
    paths = (path for folder in folders for path in (root / folder).rglob("*.py"))
    return sorted(path for path in paths if "versions" not in path.parts)


def check_module(name: str, text: str) -> Iterator[Finding]:
    """Lengths, parameters and nesting in one module."""
    lines = len(text.splitlines())
    if lines > MAX_MODULE_LINES:
        yield Finding(f"{name}:1", f"a module of {lines} lines (at most {MAX_MODULE_LINES})")
    for qualified, function in walk_functions(ast.parse(text)):
        place = f"{name}:{function.lineno}"
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > MAX_FUNCTION_LINES:
            yield Finding(place, f"{qualified} has {length} lines (at most {MAX_FUNCTION_LINES})")
        parameters = count_parameters(function)
        if parameters > MAX_PARAMETERS:
            yield Finding(place, f"{qualified} has {parameters} parameters (at most {MAX_PARAMETERS})")
        depth = _deepest(function.body)
        if depth > MAX_NESTING:
            yield Finding(place, f"{qualified} nests {depth} deep (at most {MAX_NESTING})")


def find_broad_excepts(name: str, text: str) -> Iterator[str]:
    """`path::function` for each handler, or `suppress`, that catches everything. One that ends in a bare `raise` only
    cleans up, and does not count.
    """
    tree = ast.parse(text)
    inside = {id(node): qualified for qualified, function in walk_functions(tree) for node in ast.walk(function)}
    for node in ast.walk(tree):
        caught: Iterable[ast.expr | None] = ()
        if isinstance(node, ast.ExceptHandler) and not _raises_again(node):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else (node.type,)
        elif isinstance(node, ast.Call) and _last_name(node.func) == "suppress":
            caught = node.args
        if any(each is None or _last_name(each) in _BROAD for each in caught):
            yield f"{name}::{inside.get(id(node), '<module>')}"


def walk_functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """Every function with its dotted name; an outer one comes before those inside it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield f"{prefix}{child.name}", child
        inner = f"{prefix}{child.name}." if isinstance(child, _Function | ast.ClassDef) else prefix
        yield from walk_functions(child, inner)


def count_parameters(function: _Function) -> int:
    """Without `self` and `cls`."""
    given = function.args
    names = [
        each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg) if each
    ]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def measure_depth(node: ast.AST) -> int:
    """How deep blocks stand in each other. `elif` stays at its `if`; a function inside begins anew."""
    if isinstance(node, _Function | ast.ClassDef | ast.Lambda):
        return 0
    if isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
        return max(_deepest(node.body) + 1, measure_depth(node.orelse[0]))
    return _deepest(ast.iter_child_nodes(node)) + isinstance(node, _BLOCKS)


def _deepest(nodes: Iterable[ast.AST]) -> int:
    return max((measure_depth(node) for node in nodes), default=0)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _last_name(node: ast.expr | None) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Runs the command line above."""
    parser = argparse.ArgumentParser(prog="python -m scripts.shape", description="What is losing its shape.")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when there is anything")
    chosen = parser.parse_args(arguments)
    found = find_all(root)
    sys.stdout.writelines(f"{finding}\n" for finding in found)
    sys.stdout.write(f"{len(found)} findings\n" if found else "in shape\n")
    return 1 if found and chosen.strict else 0


if __name__ == "__main__":
    raise SystemExit(main())
