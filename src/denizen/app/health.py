"""Looks at everything that has to work, for `denizen doctor` and for the overview of the web.

Each check says what it found. One that finds a part broken raises the error that tells why, and what to do.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread

from denizen.app.google import list_google_services, open_google_account
from denizen.domain.diagnosis import Diagnosis, Severity
from denizen.domain.errors import DenizenError, NeedsAttention, Unavailable
from denizen.domain.event_source import EventSourceStatus
from denizen.domain.record import record
from denizen.domain.routing import MODELS
from denizen.domain.tool import Tier

if TYPE_CHECKING:
    from denizen.adapters.discord.client.settings import DiscordEndpoints
    from denizen.adapters.mcp import McpToolset
    from denizen.app.build import Denizen
    from denizen.app.settings import Settings
    from denizen.app.settings.discord import DiscordLogin
    from denizen.app.settings.github import GitHubLogin
    from denizen.domain.clock import Clock

FREE_DISK_BYTES = 500_000_000


@record
class CheckResult:
    """The words of a check whose part works, and its findings besides."""

    said: str = ""
    findings: Sequence[Diagnosis] = ()


@record
class HealthCheck:
    """One thing that has to work: its kind, and which of several it is. `look` raises what is wrong."""

    kind: str
    look: Callable[[], Awaitable[CheckResult]]
    subject: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.subject}".rstrip()


@record
class CheckOutcome:
    """The findings of one check, in the order in which people read them, and the error with which it failed."""

    name: str
    kind: str
    findings: Sequence[Diagnosis] = ()
    error: DenizenError | None = None

    @property
    def diagnoses(self) -> Sequence[Diagnosis]:
        """The findings, with the error as one of them."""
        if self.error is None:
            return self.findings
        why = f" ({self.error.why})" if self.error.why else ""
        what = f"{self.name}: {self.error.message}{why}"
        return [*self.findings, Diagnosis(Severity.ERROR, what, self.error.fix, self.error.code)]


async def run_check(check: HealthCheck) -> CheckOutcome:
    try:
        result = await check.look()
    except DenizenError as error:
        return CheckOutcome(check.name, check.kind, error=error)
    said = (Diagnosis(Severity.OK, f"{check.name}: {result.said}"),) if result.said else ()
    return CheckOutcome(check.name, check.kind, (*result.findings, *said))


async def diagnose(denizen: Denizen, *, is_thorough: bool) -> Sequence[Diagnosis]:
    """Returns the findings of all checks of an open Denizen. Only thorough ones ask models, MCP servers and platforms,
    which takes a while and may cost money.
    """
    checks = [
        HealthCheck("python and disk", lambda: check_machine(denizen.home)),
        *list_checks(denizen, offline=not is_thorough),
        *([*list_server_checks(denizen), *list_account_checks(denizen)] if is_thorough else ()),
    ]
    warnings = [Diagnosis(Severity.WARNING, str(each), each.fix) for each in denizen.settings.warnings]
    return [*warnings, *[each for check in checks for each in (await run_check(check)).diagnoses]]


def list_checks(denizen: Denizen, *, offline: bool) -> list[HealthCheck]:
    """Returns the checks of what Denizen itself is made of; unless `offline`, those of the models too."""
    checks = [
        HealthCheck("tools", lambda: _tools(denizen)),
        HealthCheck("memory", lambda: _memory(denizen, offline=offline)),
    ]
    if denizen.runtime.current.events.sources:
        checks.append(HealthCheck("sources of events", lambda: _event_sources(denizen)))
    if denizen.runtime.current.issue_mirrors:
        checks.append(HealthCheck("mirrored issues", lambda: _mirrored_issues(denizen)))
    checks.append(HealthCheck("approvals", lambda: _approvals(denizen)))
    checks.append(HealthCheck("backups", lambda: _backups(denizen)))
    checks.append(HealthCheck("upgrades", lambda: _upgrades(denizen)))
    checks.append(HealthCheck("skills", lambda: _skills(denizen)))
    checks.append(HealthCheck("read-only shell", lambda: _shell(denizen)))
    if not offline:
        agents = denizen.queries.list_agents()
        names = sorted({name for agent in agents for name in (MODELS if agent.is_routed else (agent.model,))})
        aliases = denizen.settings.models.aliases
        firsts = {name: aliases[name].model if name in aliases else name for name in names}
        checks += [HealthCheck("model", lambda full=full: _model(denizen, full), name) for name, full in firsts.items()]
        later = dict.fromkeys(each for name in names if name in aliases for each in aliases[name].fallbacks)
        checks += [
            HealthCheck("fallback", lambda full=full: _fallback(denizen, full), full)
            for full in later
            if full not in firsts.values()
        ]
    return checks


def list_server_checks(denizen: Denizen) -> list[HealthCheck]:
    """Returns the checks of the MCP servers; what they may reach is theirs, so they are asked offline too."""
    return [
        HealthCheck("mcp server", lambda toolset=toolset: _server(denizen, toolset), toolset.server.spec.name)
        for toolset in denizen.mcp_toolsets
    ]


def list_account_checks(denizen: Denizen) -> list[HealthCheck]:
    """Returns the checks of the accounts on platforms, which are asked."""
    settings = denizen.settings
    return [
        *(
            HealthCheck("discord", lambda login=login: _discord(login, settings.discord_endpoints), login.agent)
            for login in settings.discord_accounts
        ),
        *(
            HealthCheck("github", lambda login=login: _github(login, denizen.services.clock), login.agent)
            for login in settings.github_accounts
        ),
        *([HealthCheck("calendar", lambda: _calendar(denizen))] if _is_on(settings, "calendar") else ()),
        *([HealthCheck("google", lambda: _google(denizen))] if list_google_services(settings) else ()),
    ]


async def check_machine(home: Path) -> CheckResult:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    if free < FREE_DISK_BYTES:
        raise NeedsAttention(
            f"Only {free / 1e6:.0f} MB are free below {place}.",
            code="disk_low",
            fix="Make room, or move the home folder.",
        )
    return CheckResult(f"Python {sys.version.split()[0]}, {free / 1e9:.0f} GB free below {place}")


async def _server(denizen: Denizen, toolset: McpToolset) -> CheckResult:
    from denizen.app.toolsets import examine_server

    report = await examine_server(toolset, denizen.mask)
    left_out = f", {len(report.left_out)} left out" if report.left_out else ""
    return CheckResult(f"{report.about} answers, {len(report.tools)} tools{left_out}")


async def _discord(login: DiscordLogin, endpoints: DiscordEndpoints) -> CheckResult:
    """Asks Discord about one account: its token, its intents, its permissions in every channel."""
    from denizen.adapters.discord.check import check_account
    from denizen.adapters.discord.client.settings import DiscordAccountSettings

    settings = DiscordAccountSettings(login.agent, login.token, endpoints, commands_guild=login.commands_guild)
    checklist = await check_account(settings)
    return _told_by(f"discord {login.agent}", checklist.findings)


async def _github(login: GitHubLogin, clock: Clock) -> CheckResult:
    """Asks GitHub about one account: its credentials, its webhook, its permissions."""
    from denizen.adapters.github.check import check_account

    return _told_by(f"github {login.agent}", await check_account(login.account, clock))


def _is_on(settings: Settings, skill: str) -> bool:
    return skill in settings.tools and settings.tools[skill].enabled is True


async def _calendar(denizen: Denizen) -> CheckResult:
    """Asks the server of CalDAV for its calendars."""
    from denizen.builtin_skills.calendar import CalendarSettings, skill

    options = skill.read_settings(denizen.settings.tools["calendar"].options)
    assert isinstance(options, CalendarSettings)
    found = await denizen.generation_deps.skills.open_calendars(options.login).list_calendars()
    default = next((each.name for each in found if each.is_default), "none")
    return CheckResult(f"{len(found)} calendars, of which {default} is the default one")


async def _google(denizen: Denizen) -> CheckResult:
    """Asks each service of Google whose tools are on."""
    services = list_google_services(denizen.settings)
    account = open_google_account(denizen.settings, denizen.services.clock)
    if account is None:
        raise NeedsAttention(
            f"No Google account is connected, and {', '.join(services)} need one.",
            code="google_not_connected",
            fix="Run `denizen connect google`.",
        )
    address = await account.check(services)
    return CheckResult(f"{', '.join(services)} of {address or 'the account'} can be used")


def _told_by(who: str, findings: Sequence[Diagnosis]) -> CheckResult:
    return CheckResult(
        findings=[Diagnosis(each.severity, f"{who}: {each.what}", each.fix, each.code) for each in findings]
    )


async def _tools(denizen: Denizen) -> CheckResult:
    from denizen.app.settings.problem import format_path
    from denizen.app.tool_checks import FIX, find_unmatched
    from denizen.engine.configuration.tool_policy import has_rules

    tools = await denizen.queries.list_tools()
    policy, findings = denizen.runtime.current.policy, list[Diagnosis]()
    bare = [
        tool.spec.name
        for tool in tools
        # Those for administrators are on offer to them alone, and only where an agent lists them.
        if tool.tier is Tier.DANGEROUS and not tool.spec.administration and not has_rules(tool.spec, policy)
    ]
    if bare:
        fix = (
            "Each of their calls needs the observer or people. Under gate, write rules, modes or roles for them; or "
            "lower their tier, there or below mcp.servers.NAME.tiers; or take them from the agents."
        )
        findings.append(
            Diagnosis(Severity.WARNING, f"tools of tier 3 without a rule: {', '.join(bare)}", fix, "tools_bare")
        )
    if not denizen.generation_deps.own_skills.misses_some(denizen.settings.skills):
        findings += [
            Diagnosis(
                Severity.WARNING, f"{format_path(each.path)}: no tool matches '{each.pattern}'", FIX, "tools_unmatched"
            )
            for each in find_unmatched(denizen.settings, [tool.spec.name for tool in tools])
        ]
    return CheckResult(f"{len(tools)} known", findings)


async def _approvals(denizen: Denizen) -> CheckResult:
    """Calls that owners decide wait for them also where nobody tells them, and where there is no owner."""
    current = denizen.runtime.current
    untold, orphans, findings = list[str](), list[str](), list[Diagnosis]()
    for (platform, account), policy in current.account_policies.items():
        if not policy.style.asks_here and current.policy.observer.alert_place is None:
            untold.append(f"{account} on {platform}")
        elif policy.style.asks_here and not policy.staff.owners:
            orphans.append(f"{account} on {platform}")
    if untold:
        fix = "Set gate.observer.alert_channel to a channel on Discord, or look at `denizen approvals list`."
        what = f"nobody is told of calls that wait for owners: {', '.join(untold)}"
        findings.append(Diagnosis(Severity.WARNING, what, fix, "owners_untold"))
    if orphans:
        fix = (
            "Set channels.discord.owners. Without it, such calls are decided on the page and with `denizen approvals`."
        )
        what = f"nobody is an owner, who decides dangerous calls: {', '.join(orphans)}"
        findings.append(Diagnosis(Severity.WARNING, what, fix, "owners_missing"))
    return CheckResult("some reach no owner" if findings else "those who decide can be asked", findings)


async def _upgrades(denizen: Denizen) -> CheckResult:
    """An upgrade that goes on after a kill removes what it had left, and has done so when Denizen is open."""
    from denizen.adapters.store import open_dialect
    from denizen.adapters.store.upgrade_undo import find_leftovers

    files = await to_thread.run_sync(find_leftovers, open_dialect(denizen.settings.store_url))
    if not files:
        return CheckResult()
    what = f"upgrades: one that was killed has left {', '.join(each.name for each in files)} in {files[0].parent}"
    fix = "`denizen upgrade cleanup` removes them, and the copy to go back to, too. To keep that, remove only these."
    return CheckResult(findings=[Diagnosis(Severity.WARNING, what, fix)])


async def _backups(denizen: Denizen) -> CheckResult:
    """Those of the schedule. One that is missed once may come yet; twice is too old."""
    from denizen.adapters.cron import CroniterTimes
    from denizen.app.backup_schedule import find_overdue, load_backup_state

    section, now = denizen.settings.config.backups, denizen.services.clock.now()
    if not section.schedule:
        return CheckResult("none at set times; backups.schedule says when")
    state, findings = await load_backup_state(denizen.services.store, denizen.home), list[Diagnosis]()
    if state.failure is not None:
        why = f" ({state.failure.why})" if state.failure.why else ""
        what = (
            f"backups: the last try, {show_age(now - state.failure.at)} ago, was no good: {state.failure.message}{why}"
        )
        findings.append(Diagnosis(Severity.WARNING, what, state.failure.fix or "It is tried again by itself."))
    if state.good_at is None:
        return CheckResult("none yet; the running server makes the first", findings)
    age = f"the last good one is {show_age(now - state.good_at)} old"
    if find_overdue(section, state.good_at, CroniterTimes()) < now:
        fix = "Look whether the server runs and what its log says; `denizen backup` makes one now."
        findings.append(Diagnosis(Severity.WARNING, f"backups: {age}", fix))
    return CheckResult(f"{age}, {len(state.made)} kept", findings)


def show_age(age: timedelta) -> str:
    """Returns an age in the largest unit that fits, such as `3 hours`."""
    for name, unit in (("day", timedelta(days=1)), ("hour", timedelta(hours=1)), ("minute", timedelta(minutes=1))):
        if count := age // unit:
            return f"{count} {name}{'' if count == 1 else 's'}"
    return "less than a minute"


async def _event_sources(denizen: Denizen) -> CheckResult:
    """Tells of each that failed when the server looked last."""
    reports = await denizen.events.log.list_sources()
    broken = [each for each in reports if each.status is EventSourceStatus.FAILING and each.state]
    findings = [
        Diagnosis(
            Severity.WARNING,
            f"{each.source.key}: {each.state.failure if each.state else ''}",
            code="event_source_failing",
        )
        for each in broken
    ]
    return CheckResult(f"{len(reports)} configured, {len(broken)} failed at the last look", findings)


async def _mirrored_issues(denizen: Denizen) -> CheckResult:
    """Tells of each mirror whose last look failed, or left something out."""
    mirrors = {each.key: each for each in denizen.runtime.current.issue_mirrors}
    async with denizen.services.store.work(write=False) as work:
        states = [each for each in await work.issue_mirrors.list_states() if each.key in mirrors]
    findings = [
        Diagnosis(Severity.WARNING, f"{each.repository}: {each.failure}", code="mirror_failing")
        for each in states
        if each.failure
    ]
    return CheckResult(f"{len(mirrors)} configured, {len(findings)} failed at the last look", findings)


async def _memory(denizen: Denizen, *, offline: bool) -> CheckResult:
    from denizen.app.embeddings import describe_embeddings
    from denizen.ports.embed import EmbedKind

    embedder = denizen.runtime.current.knowledge.embedder
    if embedder is not None and denizen.settings.config.embeddings.provider and not offline:
        await embedder.embed(["Does this work?"], EmbedKind.QUERY)
    return CheckResult(describe_embeddings(denizen.settings, embedder))


async def _skills(denizen: Denizen) -> CheckResult:
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
    return CheckResult(f"{sum(each.state == 'enabled' for each in entries)} of your {len(entries)} enabled")


async def _shell(denizen: Denizen) -> CheckResult:
    """It need not be there: without isolation its tools are off, and all else works."""
    if not denizen.settings.sandbox.enabled:
        return CheckResult("switched off")
    try:
        return CheckResult(await denizen.generation_deps.skills.sandbox.check())
    except Unavailable as error:
        return CheckResult("its tools are off", [_warning("read-only shell", error)])


async def _model(denizen: Denizen, name: str) -> CheckResult:
    from denizen.app.models import verify_model
    from denizen.app.terminal_socket import find_server_process

    provider = denizen.settings.models.providers.get(name.partition("/")[0])
    if provider is not None and provider.kind == "embedded":
        process = find_server_process(denizen.home)
        if process is not None and process != os.getpid():
            server = f"the Denizen that runs here{f' (process {process})' if process else ''}"
            why = "since a second one takes memory; `denizen ask hello` shows whether it answers"
            return CheckResult(f"left to {server}, {why}")
    answered = await verify_model(denizen.runtime.current.models, name)
    return CheckResult(f"{answered.model} answers ({answered.duration_s:.1f} s)")


async def _fallback(denizen: Denizen, name: str) -> CheckResult:
    """One that is out of order fails nothing by itself."""
    try:
        return await _model(denizen, name)
    except DenizenError as error:
        return CheckResult("it could not stand in now", [_warning(f"fallback {name}", error)])


def _warning(about: str, error: DenizenError) -> Diagnosis:
    """The explanation stands below what it is about."""
    return Diagnosis(Severity.WARNING, f"{about}\n{error.explain()}", code=error.code)
