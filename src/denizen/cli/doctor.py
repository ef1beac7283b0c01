"""`denizen doctor`: looks at everything that has to work and explains what does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.exit_codes import DONE, exit_code
from denizen.cli.log import find_mask, leave_to_command
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, NeedsAttention

if TYPE_CHECKING:
    from denizen.app.health import CheckOutcome, CheckResult, HealthCheck
    from denizen.domain.diagnosis import Diagnosis

MARKS = {"ok": "ok", "warning": "warn", "error": "FAIL"}


@click.command()
@click.option("--offline", is_flag=True, help="Ask neither the model nor the platforms.")
@click.option("--fix", "mends", is_flag=True, help="First show what can be mended here, and mend it.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option(
    "--bundle",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a report for whoever helps you into this file (tar.gz): findings, versions, the outline of the "
    "configuration and of the log, without values, secrets, names and what anybody said.",
)
@click.pass_obj
def command(home: Path, *, offline: bool, mends: bool, yes: bool, bundle: Path | None) -> int:
    """Check home folder, configuration, store, durable log, tools, MCP servers, model and the accounts on
    Discord and GitHub; explain what is wrong and how to fix it.

    The exit code is that of the first failed check.
    """
    if mends:
        from denizen.app.repairs import plan_repairs

        repairs = plan_repairs(home)
        click.echo("\n".join(f"fix   {each}" for each in repairs) or "fix   nothing that can be mended here")
        if repairs and (yes or click.confirm("Mend this?")):
            for each in repairs:
                each.apply()
    outcomes = anyio.run(_examine, home, offline)
    if bundle is not None:
        anyio.run(_bundle, home, bundle, outcomes)
    return next((code for code in map(_exit_code, outcomes) if code != DONE), DONE)


async def _bundle(home: Path, file: Path, outcomes: Sequence[CheckOutcome]) -> None:
    from denizen.app.support_bundle import build_bundle, write_bundle

    files = await build_bundle(home, outcomes, find_mask(home))
    write_bundle(file, files)
    echo(f"\n{file} has {', '.join(files)}: outlines without values and names. Look through it before you send it.")


async def _examine(home: Path, offline: bool) -> Sequence[CheckOutcome]:  # noqa: FBT001 - anyio.run passes positions only
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.app.health import (
        CheckOutcome,
        HealthCheck,
        check_machine,
        list_account_checks,
        list_checks,
        list_server_checks,
    )
    from denizen.app.tool_checks import GATE_LOG
    from denizen.app.toolsets import SHELL_LOG
    from denizen.cli.terminal import show_weights_progress

    leave_to_command("denizen.mcp", "denizen.skills", SHELL_LOG, GATE_LOG)
    outcomes = [
        await _report(HealthCheck("python and disk", lambda: check_machine(home))),
        await _report(HealthCheck("databases", lambda: _databases(home))),
    ]
    try:
        async with open_denizen(home, OpenOptions(report=show_weights_progress)) as denizen:
            click.echo("ok    configuration, store, durable log")
            for warning in denizen.settings.warnings:
                echo(f"warn  {warning}\n{_indent(f'fix: {warning.fix}')}")
            checks = [*list_checks(denizen, offline=offline), *list_server_checks(denizen)]
            checks += () if offline else list_account_checks(denizen)
            outcomes += [await _report(check) for check in checks]
    except DenizenError as error:
        echo(f"FAIL  start\n{_indent(error.explain())}")
        outcomes.append(CheckOutcome("start", "start", error=error))
    return outcomes


async def _report(check: HealthCheck) -> CheckOutcome:
    from denizen.app.health import run_check

    outcome = await run_check(check)
    for finding in outcome.findings:
        echo(_line(finding))
    if outcome.error is not None:
        echo(f"FAIL  {check.name}\n{_indent(outcome.error.explain())}")
    return outcome


def _exit_code(outcome: CheckOutcome) -> int:
    if outcome.error is not None:
        return exit_code(outcome.error.family)
    failed = any(finding.severity == "error" for finding in outcome.findings)
    return exit_code(NeedsAttention.__name__) if failed else DONE


def _line(finding: Diagnosis) -> str:
    what, _, more = finding.what.partition("\n")
    below = [*filter(None, [more]), *([f"fix: {finding.fix}"] if finding.fix else ())]
    return "\n".join([f"{MARKS[finding.severity]:<5} {what}", *map(_indent, below)])


async def _databases(home: Path) -> CheckResult:
    """They are looked through before anything opens them."""
    from denizen.app.build import check_databases
    from denizen.app.health import CheckResult
    from denizen.cli.home import load_home_settings

    try:
        settings = load_home_settings(home)
    except DenizenError:
        return CheckResult("not looked through, since the configuration cannot be used")
    await check_databases(settings)
    whole = settings.store_url.startswith("sqlite")
    return CheckResult("whole" if whole else "on Postgres, which checks them itself")


def _indent(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.splitlines())
