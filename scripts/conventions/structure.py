"""Rules about structure: no cycles between folders, helpers that earn their place, readable records and calls."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from scripts.python_sources import MODULE, Function, Module, Walk, get_last_name

MOST_FIELDS = 12
MOST_POSITIONAL = 5
_CLASS_NAME = re.compile(r"_*[A-Z]\w*[a-z]\w*")
_FORMAT_SKIP = re.compile(r"#\s*fmt:\s*(?:skip|off)\b")


# --- folders ----------------------------------------------------------------------------------------------------------


def find_folder_cycles(modules: Sequence[Module]) -> Iterator[str]:
    """Folders whose modules import each other in a circle, directly or through others, each circle once.

    A folder is a package with the modules that lie in it, not with its sub-packages. Imports count wherever they
    stand: in functions, and under `TYPE_CHECKING`. A root package that holds only a version has no edges.
    """
    for cycle in find_cycles(build_folder_graph(modules)):
        yield " <-> ".join(cycle)


def build_folder_graph(modules: Sequence[Module]) -> dict[str, set[str]]:
    """The folders that the modules of each folder import from."""
    by_name = {module.name: module for module in modules}
    graph: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for target in _list_imported(module, by_name):
            if target.folder != module.folder and not _is_bare_root(target):
                graph[module.folder].add(target.folder)
    return graph


def _list_imported(module: Module, by_name: Mapping[str, Module]) -> Iterator[Module]:
    for node in module.nodes:
        match node:
            case ast.Import(names=names):
                found = [each.name for each in names]
            case ast.ImportFrom(module=str(source), names=names):
                found = [f"{source}.{each.name}" if f"{source}.{each.name}" in by_name else source for each in names]
            case _:
                continue
        yield from (by_name[name] for name in found if name in by_name)


def _is_bare_root(module: Module) -> bool:
    return "." not in module.name and not any(isinstance(node, ast.Import | ast.ImportFrom) for node in module.nodes)


def find_cycles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """The groups of more than one node that can all reach each other, sorted."""
    reached = {node: _reach(graph, node) for node in graph}
    groups = {
        tuple(sorted({node, *(other for other in reached[node] if node in reached.get(other, ()))})) for node in graph
    }
    return sorted(list(group) for group in groups if len(group) > 1)


def _reach(graph: Mapping[str, Collection[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return seen


# --- private helpers --------------------------------------------------------------------------------------------------


def find_single_use_helpers(modules: Sequence[Module], tests: Iterable[str] = ()) -> Iterator[str]:
    """A private function or method that is called once, and whose body could stand at the place of the call.

    It earns its place if it names a step (its caller calls at least one other private helper of the module), if a test
    uses it by name (a test's text names both the module and the helper), or if it cannot stand at its call: it is
    decorated, a generator, recursive, passed on as a value, returns from the middle, or has several statements and is
    called by a lambda, a comprehension or the module itself.
    """
    tested = _list_tested(modules, tests)
    for module in modules:
        helpers = {
            name: definition
            for name, definition in module.definitions
            if isinstance(definition, Function) and _is_private(definition.name) and _is_reachable(name, module)
        }
        calls, values = _find_uses(module, {definition.name for definition in helpers.values()})
        for name, definition in helpers.items():
            if definition.name in values or (module.name, definition.name) in tested or not _can_be_folded(definition):
                continue
            if len(calls[definition.name]) == 1 and not _names_a_step(calls, definition, module.walk):
                yield f"{module.path}::{name}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_reachable(name: str, module: Module) -> bool:
    """Top-level functions and methods of classes; a function inside of a function is part of it."""
    outer = name.rpartition(".")[0]
    return not outer or any(each == outer and isinstance(node, ast.ClassDef) for each, node in module.definitions)


def _find_uses(module: Module, names: Collection[str]) -> tuple[dict[str, list[ast.Call]], set[str]]:
    """The calls of each of these names, and those among them that are used as values, such as callbacks."""
    calls: dict[str, list[ast.Call]] = defaultdict(list)
    called: set[ast.AST] = set()
    for node in module.nodes:
        if isinstance(node, ast.Call) and (name := get_last_name(node.func)) in names:
            calls[name].append(node)
            called.add(node.func)
    values = {
        name
        for node in module.nodes
        if node not in called and isinstance(getattr(node, "ctx", None), ast.Load)
        if (name := get_last_name(node)) in names
    }
    return calls, values


def _can_be_folded(function: Function) -> bool:
    if function.decorator_list:
        return False
    returns = 0
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return False
        if isinstance(node, ast.Call) and get_last_name(node.func) == function.name:
            return False
        returns += isinstance(node, ast.Return)
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return returns == 0 or (returns == 1 and isinstance(function.body[-1], ast.Return))


def _names_a_step(calls: Mapping[str, Sequence[ast.Call]], helper: Function, walk: Walk) -> bool:
    [call] = calls[helper.name]
    caller = walk.owners[call]
    if len(helper.body) > 1 + (ast.get_docstring(helper) is not None) and (call in walk.inline or caller == MODULE):
        return True
    return caller != MODULE and any(
        name != helper.name and any(walk.owners[each] == caller for each in found) for name, found in calls.items()
    )


def _list_tested(modules: Sequence[Module], tests: Iterable[str]) -> set[tuple[str, str]]:
    tested: set[tuple[str, str]] = set()
    names = {module.name for module in modules}
    for text in tests:
        private = set(re.findall(r"\b_[a-z]\w*", text))
        for name in set(re.findall(r"\bdenizen\w*(?:\.\w+)+", text)) & names:
            tested |= {(name, each) for each in private}
    return tested


# --- records and calls ------------------------------------------------------------------------------------------------


def find_wide_records(modules: Sequence[Module]) -> Iterator[str]:
    """A dataclass with more than a dozen fields; inherited ones count."""
    records = {
        definition.name: definition
        for module in modules
        for _, definition in module.definitions
        if isinstance(definition, ast.ClassDef) and _is_dataclass(definition)
    }
    for module in modules:
        for name, definition in module.definitions:
            if isinstance(definition, ast.ClassDef) and _is_dataclass(definition):
                count = len(_list_fields(definition, records))
                if count > MOST_FIELDS:
                    yield f"{module.path}::{name}"


def _is_dataclass(node: ast.ClassDef) -> bool:
    decorators = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(get_last_name(each) == "dataclass" for each in decorators)


def _list_fields(node: ast.ClassDef, records: Mapping[str, ast.ClassDef]) -> set[str]:
    fields = {
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        if "ClassVar" not in ast.unparse(each.annotation) and "KW_ONLY" not in ast.unparse(each.annotation)
    }
    for base in node.bases:
        inherited = records.get(get_last_name(base))
        if inherited is not None and inherited is not node:
            fields |= _list_fields(inherited, records)
    return fields


def find_long_calls(modules: Sequence[Module]) -> Iterator[str]:
    """A call that passes more than five positional arguments to a class of ours: nobody can tell them apart."""
    roots = {module.name.partition(".")[0] for module in modules}
    for module in modules:
        own = {definition.name for _, definition in module.definitions if isinstance(definition, ast.ClassDef)}
        for node in module.nodes:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in roots:
                own |= {each.asname or each.name for each in node.names}
        for node in module.nodes:
            if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL:
                name = get_last_name(node.func)
                if name == "cls" or (name in own and _CLASS_NAME.fullmatch(name)):
                    yield f"{module.path}::{module.walk.owners[node]} calls {name}"


def find_format_skips(modules: Sequence[Module]) -> Iterator[str]:
    """Each place where the formatter is switched off, numbered within its file."""
    for module in modules:
        for number, _ in enumerate(_FORMAT_SKIP.finditer(module.text), start=1):
            yield f"{module.path} #{number}"
