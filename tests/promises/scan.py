"""Which tests prove which promises, read from the test sources.

The markers are read from the syntax tree and not from a collected session, so that the answer is the same in a
single-file run and in every worker of a parallel one. What pytest would not collect proves nothing: a marker on it is
reported as a fault, as is one whose ids are not plain strings. A test that is marked `skip` or `xfail` proves nothing
either. Called by `tests/requirements.py` and `tests/arch/test_requirements.py`.
"""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

NOT_A_PROOF = frozenset({"skip", "xfail"})
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Proof:
    """One test (`tests/domain/test_text.py::TestSplit::test_fences_survive`) that proves one requirement."""

    requirement: str
    test: str


@dataclass(frozen=True, slots=True)
class Scan:
    """Every proof found, and every marker that cannot count, as `file:line: what is wrong`."""

    proofs: tuple[Proof, ...]
    faults: tuple[str, ...]


def scan_tests(root: Path) -> Scan:
    """Read every Python file below `root`, the folder of tests; names of tests start with that folder's name.

    Raises SyntaxError for a file that does not parse.
    """
    trees = {
        path.relative_to(root.parent).as_posix(): ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for path in sorted(root.rglob("*.py"))
    }
    collected = find_collected_classes(trees)
    proofs: list[Proof] = []
    faults: list[str] = []
    for name, tree in trees.items():
        reader = _Reader(name, collected, _module_values(tree))
        proofs.extend(reader.read(tree))
        faults.extend(reader.faults)
        faults.extend(
            f"{name}:{mark.lineno}: `proves` marks nothing that pytest collects; put it, called with ids, on a test"
            for mark in _proves_attributes(tree)
            if mark not in reader.seen
        )
    return Scan(tuple(proofs), tuple(faults))


def find_collected_classes(trees: Mapping[str, ast.Module]) -> frozenset[str]:
    """Names of the classes whose tests run: `Test...` in a test module, and the classes that those inherit from."""
    bases: dict[str, set[str]] = {}
    pending: list[str] = []
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(_last_name(base) for base in node.bases)
                if is_test_module(name) and node.name.startswith("Test"):
                    pending.append(node.name)
    collected: set[str] = set()
    while pending:
        current = pending.pop()
        if current not in collected:
            collected.add(current)
            pending.extend(bases.get(current, ()))
    return frozenset(collected)


def is_test_module(path: str) -> bool:
    """Whether pytest collects tests from this file, by its default names."""
    name = path.rpartition("/")[2]
    return (name.startswith("test_") and name.endswith(".py")) or name.endswith("_test.py")


@dataclass(slots=True)
class _Marks:
    """What the markers on one thing say: the ids it proves, where they stand, and whether it runs as a plain test."""

    ids: list[str] = field(default_factory=list[str])
    at: list[ast.Attribute] = field(default_factory=list[ast.Attribute])
    runs: bool = True

    def and_also(self, other: "_Marks") -> "_Marks":
        return _Marks([*self.ids, *other.ids], [*self.at, *other.at], self.runs and other.runs)


@dataclass(slots=True)
class _Reader:
    """Reads one file; keeps the markers that were understood (`seen`) and the faults met on the way."""

    path: str
    collected: frozenset[str]
    values: Mapping[str, ast.expr]
    seen: set[ast.Attribute] = field(default_factory=set[ast.Attribute])
    faults: list[str] = field(default_factory=list[str])

    def read(self, tree: ast.Module) -> list[Proof]:
        if is_test_module(self.path):
            return self._scope(tree.body, self.path, _Marks(), self._pytestmark(tree.body))
        # Only classes of this file run, in the modules that inherit from them, where this `pytestmark` does not reach.
        classes = [node for node in _flat(tree.body) if isinstance(node, ast.ClassDef)]
        return self._scope(classes, self.path, _Marks(), _Marks())

    def _scope(
        self, body: Sequence[ast.stmt], name: str, inherited: _Marks, own: _Marks, *, inherits_tests: bool = False
    ) -> list[Proof]:
        """Proofs in the body of a module or class whose own marks are `own`; these count only where a test runs."""
        marks = inherited.and_also(own)
        found: list[Proof] = []
        has_tests = inherits_tests
        for node in _flat(body):
            inner = f"{name}::{node.name}" if isinstance(node, Function | ast.ClassDef) else name
            if isinstance(node, Function) and node.name.startswith("test"):
                has_tests = True
                found.extend(self._test(node, inner, marks))
            elif isinstance(node, ast.ClassDef) and node.name in self.collected:
                has_tests = True
                on_class = self._read_marks(node.decorator_list).and_also(self._pytestmark(node.body))
                found.extend(self._scope(node.body, inner, marks, on_class, inherits_tests=bool(node.bases)))
            for alias, value in _assigned_values(node).items():
                if alias.startswith("Test") and _last_name(value) == "TestCase":  # a state machine of hypothesis
                    has_tests = True
                    found.extend(Proof(each, f"{name}::{alias}") for each in marks.ids if marks.runs)
        if has_tests:
            self.seen.update(own.at)
        if inherits_tests and marks.runs:
            found.extend(Proof(each, name) for each in marks.ids)
        return found

    def _test(self, node: Function, name: str, inherited: _Marks) -> list[Proof]:
        own = self._read_marks(node.decorator_list)
        marks = inherited.and_also(own)
        self.seen.update(own.at)
        proved = list(marks.ids) if marks.runs else []
        for param in self._params(node.decorator_list):
            self.seen.update(param.at)
            if marks.runs and param.runs:
                proved.extend(param.ids)
        return [Proof(each, name) for each in proved]

    def _pytestmark(self, body: Sequence[ast.stmt]) -> _Marks:
        marks = _Marks()
        for node in _flat(body):
            value = _assigned_values(node).get("pytestmark")
            if value is not None:
                marks = marks.and_also(self._read_marks([value]))
        return marks

    def _params(self, decorators: Iterable[ast.expr]) -> Iterator[_Marks]:
        """The marks of each `pytest.param` in the decorators, looked up through names of the module."""
        pending: list[ast.AST] = list(decorators)
        followed: set[str] = set()
        while pending:
            for node in ast.walk(pending.pop()):
                if isinstance(node, ast.Call) and _last_name(node.func) == "param":
                    for keyword in node.keywords:
                        if keyword.arg == "marks":
                            yield self._read_marks([keyword.value])
                elif isinstance(node, ast.Name) and node.id in self.values and node.id not in followed:
                    followed.add(node.id)
                    pending.append(self.values[node.id])

    def _read_marks(self, expressions: Iterable[ast.expr]) -> _Marks:
        """The marks in decorators, or in the value of `pytestmark` or `marks`: one, or a list of them."""
        marks = _Marks()
        for node in expressions:
            if isinstance(node, ast.List | ast.Tuple):
                marks = marks.and_also(self._read_marks(node.elts))
            mark = _find_mark(node.func if isinstance(node, ast.Call) else node)
            if mark is None:
                continue
            if mark.attr in NOT_A_PROOF:
                marks = marks.and_also(_Marks(runs=False))
            elif mark.attr == "proves" and isinstance(node, ast.Call):
                marks = marks.and_also(_Marks(self._ids(node), [mark]))
        return marks

    def _ids(self, call: ast.Call) -> list[str]:
        ids = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        if not ids or call.keywords or len(ids) < len(call.args):
            self._fault(call, "`proves` takes one or more ids as plain strings")
        return ids

    def _fault(self, node: ast.expr, what: str) -> None:
        fault = f"{self.path}:{node.lineno}: {what}"
        if fault not in self.faults:
            self.faults.append(fault)


def _find_mark(node: ast.AST) -> ast.Attribute | None:
    """`pytest.mark.something`, or `mark.something` after an import of `mark`."""
    return node if isinstance(node, ast.Attribute) and _last_name(node.value) == "mark" else None


def _proves_attributes(tree: ast.Module) -> Iterator[ast.Attribute]:
    marks = (_find_mark(node) for node in ast.walk(tree))
    return (mark for mark in marks if mark is not None and mark.attr == "proves")


def _assigned_values(node: ast.stmt) -> dict[str, ast.expr]:
    """The names that a statement assigns, with the expression that each one gets."""
    if isinstance(node, ast.Assign):
        return {each.id: node.value for each in node.targets if isinstance(each, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        return {node.target.id: node.value}
    return {}


def _module_values(tree: ast.Module) -> dict[str, ast.expr]:
    """What the module's own names are assigned, such as a list of parameters kept beside the tests."""
    return {name: value for node in _flat(tree.body) for name, value in _assigned_values(node).items()}


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those inside its `if`, `try` and `with` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.With | ast.Try):
            yield from _flat(node.body)
        if isinstance(node, ast.If | ast.Try):
            yield from _flat(node.orelse)


def _last_name(node: ast.expr) -> str:
    """`TestCase` of `unittest.TestCase`, `mark` of `pytest.mark`, `Contract` of `Contract[Store]`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.id if isinstance(node, ast.Name) else ""
