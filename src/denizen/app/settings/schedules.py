"""The section `schedules`: prompts that agents get at set times, and the `Schedule` records that the engine runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, WrapValidator, model_validator
from pydantic import ValidatorFunctionWrapHandler as Handler

from denizen.adapters.cron import EXPECTED, CroniterTimes, find_cron_fault, find_moment
from denizen.adapters.discord.client.settings import PLATFORM
from denizen.app.home.secrets import FileSecrets
from denizen.app.settings.discord import DiscordSection
from denizen.app.settings.fields import (
    Secret,
    Section,
    SomeText,
    Text,
    Zone,
    at_most,
    copy_fields,
    default_section,
    is_url,
    keep_template,
    read_digits,
    refuse,
    show_value,
)
from denizen.app.settings.gate import JobBudgetSection
from denizen.app.settings.hooks import HooksSection, find_misspelt_variables
from denizen.app.settings.interpolation import InterpolatedText, as_written, expand_tree, names_variable
from denizen.app.settings.knowledge import PrivateHost
from denizen.app.settings.problem import ConfigProblem, KeyPath, find_closest, suggest
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.agent import Agent
from denizen.domain.conversation import MAX_NAME_CHARS
from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.hook import list_variables
from denizen.domain.ids import AgentName
from denizen.domain.moment import MAX_CHARS
from denizen.domain.prompt_messages import agent_timezone
from denizen.domain.rate_limit import HOUR_S
from denizen.domain.recurrence import RECURRENCE_FORMS, find_recurrence
from denizen.domain.schedule import (
    LAST_RUN,
    LAST_RUN_EPOCH,
    SCHEDULE_NAME,
    SCHEDULE_VARIABLES,
    CatchUp,
    DeliveryRoute,
    Schedule,
    ScheduleBudget,
    ScheduleConduct,
    ScheduleDelivery,
)
from denizen.domain.workflow_triggers import CALL_TRIGGER, read_tool_call

PROMPT_CHARS = 20_000
LOG, NONE, CHANNEL, DIRECT = "log", "none", "discord", "discord-dm"
WEBHOOK, MAIL = "webhook", "mail"
MIN_SECRET_CHARS = 16
_ROUTES = {
    LOG: DeliveryRoute.LOG,
    NONE: DeliveryRoute.LOG,
    CHANNEL: DeliveryRoute.CHANNEL,
    DIRECT: DeliveryRoute.DIRECT,
}
_TARGET = re.compile(r"[0-9]{1,20}")
_OWNER = re.compile(r"platform_user:[a-z]+:[0-9A-Za-z_-]{1,64}")
_SPAN = re.compile(r"(\d{1,5})\s*([smh])")
_LIFE = re.compile(r"[0-9a-z_]{1,64}")


def _schedule_name(value: str) -> str:
    if not SCHEDULE_NAME.fullmatch(value):
        fix = "Use lower-case letters, digits, and _ - after the first character; 64 at most."
        raise refuse("this cannot be the name of a schedule.", fix)
    return value


def _cron(value: object, handler: Handler) -> object:
    """Names the part that is wrong, but only of what stands in the file itself: a variable may hold a secret."""
    text: str = handler(value)
    fault = find_cron_fault(text)
    if fault is None:
        return text
    told, fix = f"'{show_value(fault.part)}' {fault.message}", fault.fix
    if isinstance(value, InterpolatedText):
        told, fix = f"what {show_value(value)} stands for is none", EXPECTED
    raise refuse(f"this is no cron expression that comes true some day: {told}.", fix)


def _optional_cron(value: object, handler: Handler) -> object:
    return value if value == "" or value is None else _cron(value, handler)


def _when(value: str) -> str:
    """Takes words for times that come again. Those for one time count from the moment at which they are said, which a
    file does not keep.
    """
    try:
        cron = find_recurrence(value) if value else ""
    except InvalidInput as error:
        raise refuse("these times cannot be planned, or have no time of the day.", error.fix) from None
    if cron is None:
        fix = f"Write one of: {RECURRENCE_FORMS}. For one time write at: 2026-12-24T18:30; for an expression, cron."
        raise refuse("these words say no times that come again.", fix)
    if cron and find_cron_fault(cron):
        raise refuse("these times never come: no month has that day.", "Write a day that the month has.")
    return value


def _at(value: str) -> str:
    try:
        datetime.fromisoformat(value)
        is_moment = ":" in value
    except ValueError:
        is_moment = False
    if not is_moment:
        fix = "Write 2026-12-24T18:30, in the zone of the schedule, or with an offset: 2026-12-24T18:30+01:00."
        raise refuse("this is no moment.", fix)
    return value


def _read_span(value: object) -> object:
    """Reads `30s`, `5m` and `2h` as seconds."""
    found = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    return int(found[1]) * {"s": 1, "m": 60, "h": HOUR_S}[found[2]] if found else value


def _target(value: str) -> str:
    if value and not _TARGET.fullmatch(value):
        fix = "Write the number that `Copy ID` gives; that entry is in Discord's menus once Developer Mode is on."
        raise refuse("this is not an id of Discord.", fix)
    return value


def _owner(value: str) -> str:
    if value and not _OWNER.fullmatch(value):
        raise refuse("this is nobody who can have a schedule.", "Write platform_user:discord:ID, or take it out.")
    return value


def _life(value: str) -> str:
    if value and not _LIFE.fullmatch(value):
        raise refuse("this is no sign of a schedule.", "Use lower-case letters, digits and _; 64 at most.")
    return value


def read_short_delivery(value: object) -> object:
    return {"to": value} if isinstance(value, str) else value


ScheduleName = Annotated[str, AfterValidator(_schedule_name)]
OptionalCron = Annotated[str, WrapValidator(_optional_cron), WrapValidator(keep_template)]
Target = Annotated[str, BeforeValidator(read_digits), AfterValidator(_target), WrapValidator(keep_template)]


def _check_place(to: str, target: str) -> None:
    """Raises for a target that does not fit the log, a channel or a person."""
    if to == CHANNEL and not target:
        fix = "Write delivery: {to: discord, target: '123456789012345678'}, with the id of the channel."
        raise refuse("a delivery into a channel needs its id.", fix, key="target")
    if to in (LOG, NONE) and target:
        raise refuse("the log has no target.", "Write to: discord or to: discord-dm, or take the target out.")


class DeliverySection(Section):
    """Where the answer goes. `delivery: log` is the short form."""

    to: Literal["log", "discord", "discord-dm"] = Field(
        default="log",
        description="`log`: it stays in the session; `discord`: into a channel; `discord-dm`: to a person.",
    )
    target: Target = Field(
        default="", description="Id of the channel or the person; of a person, empty: an owner of the account."
    )

    @model_validator(mode="after")
    def _has_target(self) -> Self:
        _check_place(self.to, self.target)
        return self

    @property
    def record(self) -> ScheduleDelivery:
        return ScheduleDelivery(_ROUTES[self.to], "" if self.to == LOG else PLATFORM, self.target)


class ScheduleDeliverySection(Section):
    """Where the answer goes. `delivery: log` is the short form."""

    to: Literal["log", "none", "discord", "discord-dm", "webhook", "mail"] = Field(
        default="log",
        description="`log` or `none`: it stays in the session; `discord`: into a channel; `discord-dm`: to a person; "
        "`webhook`: as signed JSON to an address; `mail`: by the account of `tools.mail`.",
    )
    target: Annotated[Text, BeforeValidator(read_digits), WrapValidator(keep_template)] = Field(
        default="",
        description="Id of the channel or the person (of a person, empty: an owner of the account); for `webhook` its "
        "address, which `${NAME}` keeps out of the file; for `mail` the recipients, divided by commas.",
    )
    subject: Annotated[Text, at_most(200)] = Field(
        default="", description="Subject of the mail; empty: the name of the schedule."
    )
    secret: Secret = Field(default=None, description="The secret that signs webhooks, as Standard Webhooks do.")
    private_hosts: tuple[PrivateHost, ...] = Field(
        default=(), description="Servers to which webhooks go although their addresses are private, as `10.0.0.5:8080`."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        match self.to:
            case "webhook":
                if not is_url(self.target, ("https", "http")):
                    raise refuse("a webhook needs an address.", "Write target: https://example.org/hook.", key="target")
                if self.secret is None:
                    fix = "Write secret: ${NAME}, and a long NAME into secrets.env."
                    raise refuse("a webhook is signed with a secret.", fix, key="secret")
            case "mail":
                if "@" not in self.target:
                    raise refuse("mail needs an address.", "Write target: ana@example.org.", key="target")
            case _:
                _target(self.target)
                _check_place(self.to, self.target)
        for key, way in (("subject", "mail"), ("secret", "webhook"), ("private_hosts", "webhook")):
            if getattr(self, key) and self.to != way:
                raise refuse(f"only a delivery to: {way} has it.", "Take it out.", key=key)
        return self

    def build_record(self, secrets: FileSecrets) -> ScheduleDelivery:
        """Raises NeedsAttention for a secret that is missing or could be guessed."""
        if self.to in _ROUTES:
            return ScheduleDelivery(_ROUTES[self.to], PLATFORM if self.to in (CHANNEL, DIRECT) else "", self.target)
        secret = secrets.resolve(self.secret) if self.secret else ""
        if self.to == WEBHOOK and len(secret) < MIN_SECRET_CHARS:
            raise NeedsAttention(
                "The secret of a schedule's webhook is missing or too short.",
                code="secret_short",
                why=f"With less than {MIN_SECRET_CHARS} characters it could be guessed.",
                fix="Write a long one into secrets.env, such as `openssl rand -hex 32` makes.",
            )
        return ScheduleDelivery(
            to=DeliveryRoute(self.to),
            target=self.target,
            subject=self.subject,
            secret=secret,
            private_hosts=self.private_hosts,
        )


class ScheduleSection(Section):
    """A prompt that an agent gets at set times."""

    when: Annotated[Text, at_most(MAX_CHARS), AfterValidator(_when), WrapValidator(keep_template)] = Field(
        default="", description="When, in words: `every Monday at 9`, `every weekday at 18:30`, `every 2 hours`."
    )
    cron: OptionalCron = Field(
        default="", description="Instead of words: minute, hour, day, month and weekday, or a name such as `@daily`."
    )
    at: Annotated[Text, AfterValidator(_at)] = Field(
        default="", description="For a single run, its time: `2026-12-24T18:30`. After it, the schedule is over."
    )
    said: Annotated[Text, at_most(MAX_CHARS)] = Field(
        default="", description="The words that `at` was made of, such as `in 3 hours`; they are shown beside it."
    )
    jitter: Annotated[int, BeforeValidator(_read_span)] = Field(
        default=0,
        ge=0,
        le=12 * HOUR_S,
        description="Each time comes later by up to so many seconds, or `5m`, so that not all schedules run at once.",
    )
    zone: Zone = Field(default="", description="Time zone of these times; unset: that of the agent, or else UTC.")
    prompt: Annotated[SomeText, at_most(PROMPT_CHARS)] = Field(default="", description="What the agent is told.")
    tool: Text = Field(default="", description="Instead of a prompt: the tool that is called, without a model.")
    workflow: Text = Field(
        default="", description="Instead of a prompt: the workflow that is run, from its `manual` trigger."
    )
    args: dict[str, Any] = Field(
        default_factory=dict[str, Any],
        description="Arguments of the tool (`{{planned_at}}` is the time of the run), or inputs of the workflow.",
    )
    agent: Text = Field(default="", description="The agent that gets it; empty: the default agent.")
    session: Annotated[Text, at_most(MAX_NAME_CHARS)] = Field(
        default="", description="Name of the session; empty: `cron:NAME`. Schedules with the same one share it."
    )
    new_session: bool = Field(default=False, description="Whether each run begins a new session.")
    model: Text = Field(default="", description="Alias or provider/model for the runs; empty: that of the agent.")
    enabled: bool = Field(default=True, description="Whether it runs by itself. Off, its `owner` cannot run it, too.")
    paused: bool = Field(default=False, description="Whether its `owner` has switched it off, which they may undo.")
    wake_agent: bool = Field(
        default=True, description="Whether the agent answers. If not, the prompt is left in the session for later."
    )
    delivery: Annotated[ScheduleDeliverySection, BeforeValidator(read_short_delivery)] = default_section()
    catch_up: CatchUp = Field(
        default=CatchUp.SKIP,
        description="What becomes of times at which the server was not there: `skip`, or `once`: one run for all.",
    )
    budget: JobBudgetSection = default_section("What it may cost. Where that is used up, its times are skipped.")
    hooks: HooksSection = default_section(
        "Calls of tools around each run, behind those of the agent. `{{last_run}}`, `{{last_run_epoch}}`, "
        "`{{last_response}}` and `{{next_task}}` stand for what is known of the run."
    )
    owner: Annotated[str, AfterValidator(_owner)] = Field(
        default="", description="Who had an agent make it, as `platform_user:discord:ID`: it is theirs to change."
    )
    life: Annotated[str, AfterValidator(_life)] = Field(
        default="", description="Tells one with an `owner` from others that have had its name; written with it."
    )

    @model_validator(mode="after")
    def _has_times(self) -> Self:
        given = [key for key in ("when", "cron", "at") if getattr(self, key)]
        if len(given) != 1:
            told = f"has {' and '.join(given)}, which say different times" if given else "says no time"
            raise refuse(f"a schedule {told}.", "Write one of when: every day at 9:00, cron: 0 9 * * *, or at.")
        if self.said and not self.at:
            raise refuse("`said` belongs to `at`.", "Write the words as when.", key="said")
        return self

    @model_validator(mode="after")
    def _has_action(self) -> Self:
        given = [key for key in ("prompt", "tool", "workflow") if getattr(self, key).strip()]
        if len(given) != 1:
            told = f"has {' and '.join(given)}" if given else "has nothing to do: its prompt is missing"
            raise refuse(f"a schedule {told}.", "Write one of prompt, tool and workflow.")
        if self.prompt:
            if self.args:
                raise refuse("a prompt has no arguments.", "Take them out.", key="args")
            return self
        if self.delivery.to not in (LOG, NONE):
            fix = "Give it a prompt, or have the tool or a node of the workflow post it."
            raise refuse("a tool and a workflow have no answer to deliver.", fix, key="delivery")
        of_prompts = {
            "session": self.session,
            "new_session": self.new_session,
            "model": self.model,
            "wake_agent": not self.wake_agent,
            "hooks": self.hooks.before_run or self.hooks.after_run,
        }
        for key, is_set in of_prompts.items():
            if is_set:
                raise refuse("it belongs to a prompt, and a tool or workflow has none.", "Take it out.", key=key)
        if self.owner:
            raise refuse("the schedule of a person has a prompt.", "Take the owner out: then it is yours.", key="owner")
        if names_variable(self.args):
            message = "arguments name no variables: they are kept with each run, for people to read."
            raise refuse(message, "Write $${ for a plain `${`; secrets stand in the settings of tools.", key="args")
        problems = read_tool_call("name", self.tool, self.args, caller="schedule").problems if self.tool else ()
        for problem in problems:
            raise refuse(problem.message, problem.fix, key="args")
        return self

    @model_validator(mode="after")
    def _keeps_order(self) -> Self:
        """Refuses a jitter with which one run would come after the next one's time."""
        cron, start = self.expression, datetime(2026, 1, 1, tzinfo=UTC)
        times = islice(CroniterTimes().list_after(cron, "UTC", start), 50) if cron and self.jitter else ()
        gaps = [later - earlier for earlier, later in pairwise(times)]
        if self.jitter and min(gaps, default=timedelta()) <= timedelta(seconds=self.jitter):
            fix = "Write less, or let more time pass between two runs; a single time has no jitter."
            raise refuse("a jitter is shorter than the time between two runs.", fix, key="jitter")
        return self

    @property
    def expression(self) -> str:
        """The cron expression of its times; empty where there is a single one."""
        return find_recurrence(self.when) or "" if self.when else self.cron


def build_schedules(
    sections: Mapping[str, ScheduleSection],
    agents: Mapping[AgentName, Agent],
    default_agent: AgentName,
    secrets: FileSecrets,
) -> Mapping[str, Schedule]:
    """Returns the schedules by name, in the order of the file. Raises NeedsAttention for a secret of a webhook that is
    missing or could be guessed.
    """
    return {name: _build(name, section, agents, default_agent, secrets) for name, section in sections.items()}


def _build(
    name: str,
    section: ScheduleSection,
    agents: Mapping[AgentName, Agent],
    default_agent: AgentName,
    secrets: FileSecrets,
) -> Schedule:
    agent = AgentName(section.agent) or default_agent
    zone = section.zone or agent_timezone(agents[agent])
    texts = {key: getattr(section, key) for key in ("zone", "prompt", "session", "model")}
    texts |= {"cron": section.when or section.cron, "words": section.when or section.said}
    call = read_tool_call(name, section.tool, section.args, caller="schedule").workflow if section.tool else None
    written = {key: as_written(text) for key, text in {**texts, "target": section.delivery.target}.items()}
    return copy_fields(
        section,
        Schedule,
        name=name,
        enabled=section.enabled and not section.paused,
        barred=not section.enabled,
        agent=agent,
        cron=section.expression,
        at=find_moment(datetime.fromisoformat(section.at), ZoneInfo(zone)) if section.at else None,
        words=section.when or section.said,
        zone=zone,
        args=section.args if section.workflow else {},
        tool_call=call,
        trigger=CALL_TRIGGER if call else "",
        jitter=timedelta(seconds=section.jitter),
        budget=ScheduleBudget(section.budget.per_run_usd, section.budget.limits),
        conduct=copy_fields(
            section, ScheduleConduct, delivery=section.delivery.build_record(secrets), hooks=section.hooks.record
        ),
        # Texts of a schedule with an owner name no variables; they are shown, and written, as they are meant.
        templates={} if section.owner else {key: text for key, text in written.items() if "${" in text},
    )


def find_schedule_problems(
    document: ConfigDocument, schedules: Mapping[str, ScheduleSection], default_agent: str, discord: DiscordSection
) -> Iterator[ConfigProblem]:
    """Yields a problem for each delivery that can never arrive, and for each person's schedule that names a variable:
    its text is theirs, and what it says is theirs to read.
    """
    written = document.tree.get("schedules")
    for name, section in schedules.items():
        text = written.get(name) if isinstance(written, Mapping) else None
        if section.owner and isinstance(text, Mapping) and (named := expand_tree(text, {}).names):
            fix = "Write $${ for a plain `${`, or take its owner out: then it is yours."
            message = f"a schedule with an owner names no variables, and this one names {', '.join(sorted(named))}."
            yield document.problem(("schedules", name), message, fix)
        path, agent = ("schedules", name, "delivery"), section.agent or default_agent
        yield from find_delivery_problems(document, path, section.delivery, agent, discord)


def find_schedule_warnings(
    document: ConfigDocument, schedules: Mapping[str, ScheduleSection]
) -> Iterator[ConfigProblem]:
    """Yields a warning for each variable of a run that is misspelt."""
    for name, section in schedules.items():
        path: KeyPath = ("schedules", name)
        yield from find_misspelt_variables(document, (*path, "hooks"), section.hooks, SCHEDULE_VARIABLES)
        for named in sorted(list_variables(as_written(section.prompt)) - {LAST_RUN, LAST_RUN_EPOCH}):
            if near := find_closest(named, (LAST_RUN, LAST_RUN_EPOCH)):
                message = f"{{{{{named}}}}} is no variable of prompts, and stays as it is written."
                yield document.problem((*path, "prompt"), message, f"Did you mean {{{{{near}}}}}?")


def find_delivery_problems(
    document: ConfigDocument,
    path: KeyPath,
    delivery: DeliverySection | ScheduleDeliverySection,
    agent: str,
    discord: DiscordSection,
) -> Iterator[ConfigProblem]:
    """Yields a problem where that agent can never deliver."""
    if delivery.to not in (CHANNEL, DIRECT):
        return
    account = discord.accounts.get(agent)
    if account is None:
        yield from find_account_missing(document, path, agent, discord)
    elif delivery.to == DIRECT and not delivery.target and not account.owners:
        fix = "Write the person's id as target, or channels.discord.owners."
        yield document.problem(path, f"nobody is the owner of the account of '{agent}'.", fix)


def find_account_missing(
    document: ConfigDocument, path: KeyPath, agent: str, discord: DiscordSection
) -> Iterator[ConfigProblem]:
    """Yields a problem where that agent has no account while others have. Without any, `find_undelivered` warns:
    `denizen run --simulate` brings one.
    """
    if discord.accounts and agent not in discord.accounts:
        fix = suggest(agent, discord.accounts, noun="accounts")
        yield document.problem(path, f"'{agent}' has no account under channels.discord.accounts.", fix)


def find_undelivered(document: ConfigDocument, paths: Iterable[KeyPath]) -> Iterator[ConfigProblem]:
    """Yields a warning for each of these places that deliver to Discord, where there is no account at all."""
    for path in paths:
        message = "nothing arrives on Discord: there is no account under channels.discord.accounts."
        yield document.problem(path, message, "Add one, or try it with `denizen run --simulate`.")
