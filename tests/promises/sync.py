"""Setting the status of requirements from the tests that prove them.

Statuses stand as literals in the data modules, where a reader sees them beside the sentence; here they are replaced in
place and nothing else of the text is touched. Called by `tests/requirements.py`.
"""

import ast
from collections.abc import Container, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from tests.promises.requirement import Requirement, Status
from tests.promises.scan import Proof


def find_unknown(proofs: Iterable[Proof], known: Container[str]) -> list[Proof]:
    """Proofs of requirements that do not exist."""
    return [proof for proof in proofs if proof.requirement not in known]


def find_proved(requirements: Iterable[Requirement], marked: AbstractSet[str]) -> frozenset[str]:
    """Ids that tests prove: those `marked`, and those that are `same_as` requirements which are all marked."""
    return frozenset(
        each.id for each in requirements if each.id in marked or (each.same_as and marked >= set(each.same_as))
    )


def plan_statuses(requirements: Iterable[Requirement], proved: AbstractSet[str]) -> dict[str, Status]:
    """The status that each requirement should have and has not; a dropped one stays dropped."""
    wanted: dict[str, Status] = {}
    for each in requirements:
        status: Status = "covered" if each.id in proved else "open"
        if each.status not in {"dropped", status}:
            wanted[each.id] = status
    return wanted


def rewrite_statuses(source: str, wanted: Mapping[str, Status]) -> str:
    """`source`, a data module, with the status literal of each wanted requirement that it holds replaced."""
    lines = source.encode().splitlines(keepends=True)  # the syntax tree counts columns in bytes of UTF-8
    for literal, status in _find_literals(ast.parse(source), wanted):
        line = lines[literal.lineno - 1]
        lines[literal.lineno - 1] = line[: literal.col_offset] + f'"{status}"'.encode() + line[literal.end_col_offset :]
    return b"".join(lines).decode()


def sync_statuses(folder: Path, wanted: Mapping[str, Status]) -> list[Path]:
    """Rewrite the data modules in `folder`; returns the files that changed."""
    changed: list[Path] = []
    for path in sorted(folder.glob("*.py")):
        before = path.read_text(encoding="utf-8")
        after = rewrite_statuses(before, wanted)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path)
    return changed


def _find_literals(tree: ast.Module, wanted: Mapping[str, Status]) -> Iterator[tuple[ast.Constant, Status]]:
    """The status literals of the wanted requirements, each with the status that it should say."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Requirement"), args=[ast.Constant(value=str(name)), *_]) if name in wanted:
                for keyword in node.keywords:
                    if keyword.arg == "status" and isinstance(keyword.value, ast.Constant):
                        yield keyword.value, wanted[name]
            case _:
                pass
