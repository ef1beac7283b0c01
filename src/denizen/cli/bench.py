"""`denizen bench`: how well the gate holds, measured on this machine."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self, TypeVar

import anyio
import click

from denizen.cli.command_group import CommandGroup
from denizen.cli.terminal import echo

if TYPE_CHECKING:
    from denizen.testing.security.agentdojo_bench import AgentDojoBench, AgentDojoPlan
    from denizen.testing.security.report import SecurityReport

T = TypeVar("T")

OWN, DOJO, ALL = "own", "agentdojo", "all"
NOT_HELD = 1


class _Progress:
    """How far it is, on standard error: one line that is rewritten on a terminal, one for each tenth elsewhere."""

    def __init__(self, name: str, total: int) -> None:
        self._name, self._total, self._done = name, total, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if sys.stderr.isatty():
            sys.stderr.write("\n")

    def note(self, found: T) -> T:
        """One more is done; gives back what it was."""
        self._done += 1
        text = f"[{self._name}: {self._done} of {self._total}]"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
        elif self._done * 10 // self._total > (self._done - 1) * 10 // self._total:
            sys.stderr.write(f"{text}\n")
        return found


@contextmanager
def _quiet() -> Generator[None]:
    """Silences the gate's warnings: the benchmark provokes them."""
    log = logging.getLogger("denizen.gate")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@click.group(cls=CommandGroup)
def command() -> None:
    """Measure Denizen on this machine, offline."""


@command.command()
@click.option("--corpus", type=click.Choice((OWN, DOJO, ALL)), default=ALL, show_default=True, help="Which attacks.")
@click.option("--suite", "suites", multiple=True, help="Only this suite of AgentDojo; may be repeated.")
@click.option(
    "--as-mcp", is_flag=True, help="Take AgentDojo's tools as a trusted MCP server offers them: nothing is declared."
)
@click.option(
    "--every",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Only each Nth run of AgentDojo, for a quick look.",
)
@click.option("--json", "as_json", is_flag=True, help="The result as one JSON object.")
@click.option("--markdown", is_flag=True, help="The result as Markdown tables.")
@click.pass_context
def security(
    context: click.Context,
    corpus: str,
    suites: tuple[str, ...],
    every: int,
    *,
    as_mcp: bool,
    as_json: bool,
    markdown: bool,
) -> None:
    """Measure how the gate stands up to a model that obeys every instruction it reads.

    No model is asked: a script does what a page, a message or a document tells it to, and the gate decides, as it does
    in every turn. AgentDojo (its tasks, tools and injections) is used where it is installed; all of it takes some
    minutes. The exit code is 1 if an attack succeeded that must not.
    """
    from denizen.testing.security.agentdojo_bench import AgentDojoPlan
    from denizen.testing.security.report import to_json, to_markdown, to_text

    if suites and corpus == OWN:
        raise click.UsageError("--suite names suites of AgentDojo, which --corpus own leaves out.")
    if as_json and markdown:
        raise click.UsageError("Either --json or --markdown.")
    with _quiet():
        plan = AgentDojoPlan(suites, every=every, as_mcp=as_mcp)
        report = anyio.run(_run, corpus, plan)
    if as_json:
        click.echo(json.dumps(to_json(report)))
    else:
        echo(to_markdown(report) if markdown else to_text(report), nl=not markdown)
    if not report.is_held:
        context.exit(NOT_HELD)


async def _run(corpus: str, plan: AgentDojoPlan) -> SecurityReport:
    from denizen.testing.security.corpus import CORPUS, list_unobserved, run_corpus
    from denizen.testing.security.report import SecurityReport

    bench = _open_dojo(plan, is_needed=corpus == DOJO) if corpus != OWN else None
    report = SecurityReport()
    if corpus != DOJO:
        bare = list_unobserved(CORPUS)
        with _Progress("own corpus", len(CORPUS) + len(bare)) as progress:
            findings = [progress.note(each) async for each in run_corpus(CORPUS)]
            report = SecurityReport(findings, [progress.note(each) async for each in run_corpus(bare)])
    if bench is None:
        return report
    with _Progress(bench.version, bench.size) as progress:
        results = [progress.note(each) async for each in bench.run()]
    return SecurityReport(report.findings, report.unobserved, results, bench.version, bench.unplayable)


def _open_dojo(plan: AgentDojoPlan, *, is_needed: bool) -> AgentDojoBench | None:
    """None, and a word about it, where it is not installed and not asked for by name."""
    from denizen.domain.errors import NeedsAttention
    from denizen.testing.security.agentdojo import load_agentdojo
    from denizen.testing.security.agentdojo_bench import AgentDojoBench

    try:
        dojo = load_agentdojo()
    except NeedsAttention as missing:
        if is_needed:
            raise
        echo(f"Without AgentDojo: {missing.explain()}", err=True)
        return None
    return AgentDojoBench(dojo, plan)
