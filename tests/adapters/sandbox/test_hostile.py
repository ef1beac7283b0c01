"""Hundreds of hostile lines: nothing is written, nothing foreign runs, no byte comes from outside, nothing hangs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from denizen.ports.sandbox import REFUSED_EXIT_CODE, ShellResult
from tests.adapters.sandbox import hostile, hostile_grammar, hostile_programs
from tests.adapters.sandbox.runner import run_all
from tests.adapters.sandbox.sandbox_folder import LEAKS, SandboxFolder, make_sandbox_folder
from tests.adapters.sandbox.unprivileged import find_interpreter, give_to_nobody, open_folder, run_as_nobody

pytestmark = [pytest.mark.anyio, pytest.mark.proves("S17", "S18", "S19", "SW2", "E2")]


CORPORA = (hostile, hostile_programs, hostile_grammar)
REFUSED = tuple(line for corpus in CORPORA for line in corpus.REFUSED)
CONTAINED = tuple(line for corpus in CORPORA for line in corpus.CONTAINED)
ENDLESS = hostile_programs.ENDLESS
ENDLESS_LIMIT_S = 0.5
"""Each endless line takes this long whatever the machine does."""


def test_the_corpus_has_hundreds_of_lines_and_none_twice() -> None:
    assert len(REFUSED) > 1300
    assert len(CONTAINED) > 300
    assert len({*REFUSED, *CONTAINED, *ENDLESS}) == len(REFUSED) + len(CONTAINED) + len(ENDLESS)


async def test_no_hostile_line_gets_through(tier: str, documents: SandboxFolder) -> None:
    before = documents.picture()
    results = await run_all(tier, documents.root, [documents.fill(line) for line in (*REFUSED, *CONTAINED)])
    results += await run_all(tier, documents.root, list(ENDLESS), ENDLESS_LIMIT_S)
    assert documents.picture() == before
    check(results, len(REFUSED))


def test_no_hostile_line_gets_through_for_a_user_without_privileges(tier: str) -> None:
    interpreter, why = find_interpreter()
    if why:
        pytest.skip(why)
    with open_folder() as folder:
        documents = make_sandbox_folder(folder)
        give_to_nobody(documents.root)
        before = documents.picture()
        commands = [documents.fill(line) for line in (*REFUSED, *CONTAINED)]
        rows = run_as_nobody(interpreter, tier, documents.root, commands)
        if isinstance(rows, dict):
            pytest.skip(f"{tier} cannot be had by other users here: {rows}")
        rows += run_as_nobody(interpreter, tier, documents.root, ENDLESS, ENDLESS_LIMIT_S)
        assert documents.picture() == before
        check((ShellResult(**row) for row in rows), len(REFUSED))


def check(results: Iterable[ShellResult], refused: int) -> None:
    for number, result in enumerate(results):
        said = result.stdout + ("" if result.refused else result.stderr)
        assert not [leak for leak in LEAKS if leak in said and leak not in result.command], result
        assert result.exit_code is not None, result
        assert len(result.stdout) < 51_000, result.command
        if number < refused:
            assert result.refused, result
            assert result.exit_code == REFUSED_EXIT_CODE
            assert result.stderr.startswith("refused: ") or "\nrefused: " in result.stderr, result
