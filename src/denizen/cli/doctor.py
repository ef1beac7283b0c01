"""`denizen doctor`: looks at everything that has to work and explains what does not."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.cli.exit_codes import DONE, exit_code
from denizen.cli.log import leave_to_command
from denizen.cli.terminal import echo
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.record import record
from denizen.domain.routing import MODELS
from denizen.domain.tool import Tier

if TYPE_CHECKING:
    from denizen.adapters.discord.client.settings import DiscordEndpoints
    from denizen.adapters.mcp import McpToolset
    from denizen.app.build import Denizen
    from denizen.app.settings.discord import DiscordLogin
    from denizen.app.settings.github import GitHubLogin
    from denizen.domain.clock import Clock
    from denizen.domain.diagnosis import Diagnosis

FREE_DISK_BYTES = 500_000_000

_MARKS = {"ok": "ok", "warning": "warn", "error": "FAIL"}


@click.command()
@click.option("--offline", is_flag=True, help="Ask neither the model nor the platforms.")
@click.pass_obj
def command(home: Path, *, offline: bool) -> int:
    """Check home folder, configuration, store, durable log, tools, MCP servers, model and the accounts on
    Discord and GitHub; explain what is wrong and how to fix it.

    The exit code is that of the first failed check.
    """
    return anyio.run(_examine, home, offline)


@record
class HealthCheck:
    """One thing that has to work; returns what to say when it does, raises what is wrong."""

    name: str
    look: Callable[[], Awaitable[str]]


async def _examine(home: Path, offline: bool) -> int:  # noqa: FBT001 - anyio.run passes positions only
    from denizen.app.build import OpenOptions, open_denizen
    from denizen.app.tool_checks import GATE_LOG
    from denizen.app.toolsets import SHELL_LOG
    from denizen.cli.terminal import show_weights_progress

    leave_to_command("denizen.mcp", "denizen.skills", SHELL_LOG, GATE_LOG)
    first = await _report(HealthCheck("python and disk", lambda: _machine(home)))
    first = first or await _report(HealthCheck("databases", lambda: _databases(home)))
    try:
        async with open_denizen(home, OpenOptions(report=show_weights_progress)) as denizen:
            click.echo("ok    configuration, store, durable log")
            for warning in denizen.settings.warnings:
                echo(f"warn  {warning}\n{_indent(f'fix: {warning.fix}')}")
            for check in (*_checks(denizen, offline=offline), *_servers(denizen)):
                code = await _report(check)
                first = first or code
            for login in () if offline else denizen.settings.discord_accounts:
                code = await _examine_account(login, denizen.settings.discord_endpoints)
                first = first or code
            for login in () if offline else denizen.settings.github_accounts:
                code = await _examine_github(login, denizen.services.clock)
                first = first or code
    except DenizenError as error:
        echo(f"FAIL  start\n{_indent(error.explain())}")
        first = first or exit_code(error.family)
    return first


async def _report(check: HealthCheck) -> int:
    try:
        said = await check.look()
    except DenizenError as error:
        echo(f"FAIL  {check.name}\n{_indent(error.explain())}")
        return exit_code(error.family)
    echo(f"ok    {check.name}: {said}")
    return DONE


def _checks(denizen: Denizen, *, offline: bool) -> list[HealthCheck]:
    checks = [
        HealthCheck("tools", lambda: _tools(denizen)),
        HealthCheck("memory", lambda: _memory(denizen, offline=offline)),
    ]
    checks.append(HealthCheck("approvals", lambda: _approvals(denizen)))
    checks.append(HealthCheck("skills", lambda: _skills(denizen)))
    checks.append(HealthCheck("read-only shell", lambda: _shell(denizen)))
    if not offline:
        agents = denizen.queries.list_agents()
        names = sorted({name for agent in agents for name in (MODELS if agent.is_routed else (agent.model,))})
        aliases = denizen.settings.models.aliases
        firsts = {name: aliases[name].model if name in aliases else name for name in names}
        checks += [
            HealthCheck(f"model {name}", lambda full=full: _model(denizen, full)) for name, full in firsts.items()
        ]
        later = dict.fromkeys(each for name in names if name in aliases for each in aliases[name].fallbacks)
        checks += [
            HealthCheck(f"fallback {full}", lambda full=full: _fallback(denizen, full))
            for full in later
            if full not in firsts.values()
        ]
    return checks


def _servers(denizen: Denizen) -> list[HealthCheck]:
    """The MCP servers; what they may reach is theirs, so they are asked offline too."""
    return [
        HealthCheck(f"mcp server {toolset.server.spec.name}", lambda toolset=toolset: _server(denizen, toolset))
        for toolset in denizen.mcp_toolsets
    ]


async def _server(denizen: Denizen, toolset: McpToolset) -> str:
    from denizen.app.toolsets import examine_server

    report = await examine_server(toolset, denizen.mask)
    left_out = f", {len(report.left_out)} left out" if report.left_out else ""
    return f"{report.about} answers, {len(report.tools)} tools{left_out}"


async def _examine_account(login: DiscordLogin, endpoints: DiscordEndpoints) -> int:
    """Asks Discord about one account: its token, its intents, its permissions in every channel."""
    from denizen.adapters.discord.check import check_account
    from denizen.adapters.discord.client.settings import DiscordAccountSettings

    settings = DiscordAccountSettings(login.agent, login.token, endpoints, commands_guild=login.commands_guild)
    try:
        findings = await check_account(settings)
    except DenizenError as error:
        echo(f"FAIL  discord {login.agent}\n{_indent(error.explain())}")
        return exit_code(error.family)
    return _tell(f"discord {login.agent}", findings)


async def _examine_github(login: GitHubLogin, clock: Clock) -> int:
    """Asks GitHub about one account: its credentials, its webhook, its permissions."""
    from denizen.adapters.github.check import check_account

    return _tell(f"github {login.agent}", await check_account(login.account, clock))


def _tell(who: str, findings: Sequence[Diagnosis]) -> int:
    for finding in findings:
        fix = f"\n{_indent(f'fix: {finding.fix}')}" if finding.fix else ""
        echo(f"{_MARKS[finding.severity]:<5} {who}: {finding.what}{fix}")
    failed = any(finding.severity == "error" for finding in findings)
    return exit_code(NeedsAttention.__name__) if failed else DONE


async def _machine(home: Path) -> str:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < FREE_DISK_BYTES:
        raise NeedsAttention(
            f"Only {free / 1e6:.0f} MB are free below {place}.",
            code="disk_low",
            fix="Make room, or move the home folder.",
        )
    return f"Python {sys.version.split()[0]}, {free / 1e9:.0f} GB free below {place}"


async def _databases(home: Path) -> str:
    """They are looked through before anything opens them."""
    from denizen.app.build import check_databases
    from denizen.cli.home import load_home_settings

    try:
        settings = load_home_settings(home)
    except DenizenError:
        return "not looked through, since the configuration cannot be used"
    await check_databases(settings)
    return "whole" if settings.store_url.startswith("sqlite") else "on Postgres, which checks them itself"


async def _tools(denizen: Denizen) -> str:
    from denizen.app.settings.problem import format_path
    from denizen.app.tool_checks import FIX, find_unmatched
    from denizen.engine.configuration.tool_policy import has_rules

    tools = await denizen.queries.list_tools()
    policy = denizen.runtime.current.policy
    bare = [tool.spec.name for tool in tools if tool.tier is Tier.DANGEROUS and not has_rules(tool.spec, policy)]
    if bare:
        fix = (
            "Each of their calls needs the observer or people. Under gate, write rules, modes or roles for them; or "
            "lower their tier, there or below mcp.servers.NAME.tiers; or take them from the agents."
        )
        echo(f"warn  tools of tier 3 without a rule: {', '.join(bare)}\n{_indent(f'fix: {fix}')}")
    if not denizen.generation_deps.own_skills.misses_some(denizen.settings.skills):
        for each in find_unmatched(denizen.settings, [tool.spec.name for tool in tools]):
            echo(f"warn  {format_path(each.path)}: no tool matches '{each.pattern}'\n{_indent(f'fix: {FIX}')}")
    return f"{len(tools)} known"


async def _approvals(denizen: Denizen) -> str:
    """Calls that owners decide wait for them also where nobody tells them, and where there is no owner."""
    current = denizen.runtime.current
    untold, orphans = list[str](), list[str]()
    for (platform, account), policy in current.account_policies.items():
        if not policy.style.asks_here and current.policy.observer.alert_place is None:
            untold.append(f"{account} on {platform}")
        elif policy.style.asks_here and not policy.staff.owners:
            orphans.append(f"{account} on {platform}")
    if untold:
        fix = "Set gate.observer.alert_channel to a channel on Discord, or look at `denizen approvals list`."
        echo(f"warn  nobody is told of calls that wait for owners: {', '.join(untold)}\n{_indent(f'fix: {fix}')}")
    if orphans:
        fix = (
            "Set channels.discord.owners. Without it, such calls are decided on the page and with `denizen approvals`."
        )
        echo(f"warn  nobody is an owner, who decides dangerous calls: {', '.join(orphans)}\n{_indent(f'fix: {fix}')}")
    return "some reach no owner" if untold or orphans else "those who decide can be asked"


async def _memory(denizen: Denizen, *, offline: bool) -> str:
    from denizen.app.embeddings import describe_embeddings
    from denizen.ports.embed import EmbedKind

    embedder = denizen.runtime.current.knowledge.embedder
    if embedder is not None and denizen.settings.config.embeddings.provider and not offline:
        await embedder.embed(["Does this work?"], EmbedKind.QUERY)
    return describe_embeddings(denizen.settings, embedder)


async def _skills(denizen: Denizen) -> str:
    """The owner's. One that is off although it was enabled is a failure."""
    entries = denizen.generation_deps.own_skills.entries
    wanted = denizen.settings.skills
    broken = [each for each in entries if each.why and each.name in wanted and wanted[each.name].enabled]
    if broken:
        raise NeedsAttention(
            f"{len(broken)} of your skills cannot be used: {', '.join(each.name for each in broken)}.",
            code="skill_left_out",
            why="; ".join(f"{each.name}: {each.why}" for each in broken),
            fix="; ".join(dict.fromkeys(each.fix for each in broken)),
        )
    return f"{sum(each.state == 'enabled' for each in entries)} of your {len(entries)} enabled"


async def _shell(denizen: Denizen) -> str:
    """It need not be there: without isolation its tools are off, and all else works."""
    if not denizen.settings.sandbox.enabled:
        return "switched off"
    try:
        return await denizen.generation_deps.skills.sandbox.check()
    except Unavailable as error:
        echo(f"warn  read-only shell\n{_indent(error.explain())}")
        return "its tools are off"


async def _model(denizen: Denizen, name: str) -> str:
    from denizen.app.models import verify_model
    from denizen.app.terminal_socket import find_server_process

    provider = denizen.settings.models.providers.get(name.partition("/")[0])
    if provider is not None and provider.kind == "embedded":
        process = find_server_process(denizen.home)
        if process is not None:
            server = f"the Denizen that runs here{f' (process {process})' if process else ''}"
            why = "since a second one takes memory; `denizen ask hello` shows whether it answers"
            return f"left to {server}, {why}"
    answered = await verify_model(denizen.runtime.current.models, name)
    return f"{answered.model} answers ({answered.duration_s:.1f} s)"


async def _fallback(denizen: Denizen, name: str) -> str:
    """One that is out of order fails nothing by itself."""
    try:
        return await _model(denizen, name)
    except DenizenError as error:
        echo(f"warn  fallback {name}\n{_indent(error.explain())}")
        return "it could not stand in now"


def _indent(text: str) -> str:
    return "\n".join(f"      {line}" for line in text.splitlines())
