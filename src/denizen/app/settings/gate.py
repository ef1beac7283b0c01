"""The sections `gate` and `budgets`: what tools may do, what requests may cost, and the policies that follow from
them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from denizen.adapters.discord.client.settings import PLATFORM
from denizen.app.settings.fields import (
    Number,
    Pattern,
    Section,
    SomeText,
    Text,
    Whole,
    default_section,
    read_digits,
    refuse,
)
from denizen.domain.approval import ApprovalRule, Deciders
from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind, WhenExhausted
from denizen.domain.conversation import Place
from denizen.domain.principal import RoleName
from denizen.domain.rate_limit import DAY_S, HOUR_S, RateLimit
from denizen.domain.tool import Origin, Taint, Tier
from denizen.domain.verdict import Decision
from denizen.engine.configuration.tool_policy import (
    GatePolicy,
    ObserverPolicy,
    RateLimits,
    ResultPolicy,
    ToolMode,
    ToolModes,
    ToolRule,
)

_APPROVAL = ApprovalRule()
_OBSERVER = ObserverPolicy()


def _on_off(value: object) -> object:
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


Id = Annotated[SomeText, BeforeValidator(read_digits)]
"""A platform's id, in the file with quotes or without."""
Watch = Annotated[Literal["on", "off"], BeforeValidator(_on_off)]


class DecidersSection(Section):
    """How people are asked. Keys that are unset are those of `gate.approvals`, and there the defaults."""

    deciders: Deciders | None = Field(
        default=None,
        description="Who decides: the `requester`, anybody with the `role`, or a `quorum` of those. Unset: the "
        "requester; but about tools of tier 3, and in place of the observer, somebody with the role. A rule can demand "
        "more, never less: of all who want people to be asked, the strictest counts.",
    )
    role: RoleName | None = Field(default=None, description="Whose word counts with `role` and `quorum`; unset: owner.")
    quorum: Whole | None = Field(
        default=None, ge=1, le=20, description=f"How many have to say yes; unset: {_APPROVAL.quorum}."
    )
    people: tuple[SomeText, ...] = Field(
        default=(),
        description="Who may decide besides, by keys such as `platform_user:discord:123`, where nothing else demands "
        "others.",
    )
    timeout_s: Number | None = Field(
        default=None,
        ge=0,
        le=90 * DAY_S,
        description=f"How long is waited for them; 0 is for ever. Unset: {_APPROVAL.timeout_s:g}.",
    )
    on_timeout: Literal["deny", "approve"] | None = Field(
        default=None,
        description="What holds when nobody has decided in time; unset: deny. Silence never approves a call of tier 3, "
        "one that destroys something, or one that foreign texts may have brought about.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.quorum is not None and self.deciders not in (None, Deciders.QUORUM):
            raise refuse("a quorum is a kind of deciders.", "Write deciders: quorum.", key="quorum")
        if self.role is not None and self.deciders is Deciders.REQUESTER:
            raise refuse("the requester decides, so no role does.", "Write deciders: role.", key="role")
        return self

    @property
    def said(self) -> frozenset[str]:
        """The keys about people that are set."""
        return frozenset(key for key in DecidersSection.model_fields if getattr(self, key) not in (None, ()))

    def rule(self, usual: ApprovalRule) -> ApprovalRule:
        """Returns the rule of this section; what it leaves open is as in `usual`."""
        implied = Deciders.QUORUM if self.quorum else Deciders.ROLE if self.role else None
        said = {
            "deciders": self.deciders or implied,
            "role": self.role,
            "quorum": self.quorum,
            "people": frozenset(self.people) or None,
            "timeout_s": self.timeout_s,
            "grant_on_timeout": None if self.on_timeout is None else self.on_timeout == "approve",
        }
        return replace(usual, **{name: value for name, value in said.items() if value is not None})


class RuleSection(DecidersSection):
    """The first rule that matches a call decides. All that is written must match; what is left out matches
    everything.
    """

    tool: SomeText = Field(description="Name or pattern of tools, such as `*_note`.")
    action: Literal["approve", "deny", "ask"] = Field(
        description="`ask` asks people, besides what the tier demands. `approve` goes before the observer for tools of "
        "tier 2; those of tier 3 are looked at all the same."
    )
    args: dict[str, Pattern] = Field(
        default_factory=dict[str, str],
        description="Regular expressions by argument name. Each must be found in its argument, anywhere unless `^` and "
        "`$` say otherwise; a missing argument does not match.",
    )
    reason: Text = Field(default="", description="What the model and the asker are told.")
    roles: tuple[RoleName, ...] = Field(default=(), description="For askers with one of these roles.")
    principals: tuple[SomeText, ...] = Field(
        default=(),
        description="For these askers, by key or pattern, such as `platform_user:discord:123` or `api_key:*`.",
    )
    agents: tuple[SomeText, ...] = Field(default=(), description="For calls of these agents.")
    platforms: tuple[SomeText, ...] = Field(default=(), description="On these platforms, such as `discord`.")
    guilds: tuple[Id, ...] = Field(default=(), description="In these communities, by id.")
    channels: tuple[Id, ...] = Field(default=(), description="In these channels with their threads, by id.")
    origins: tuple[Origin, ...] = Field(default=(), description="For calls that come from there.")

    @model_validator(mode="after")
    def _asks(self) -> Self:
        if self.said and self.action != "ask":
            raise refuse("only a rule that asks has people who decide.", "Write action: ask.", key=min(self.said))
        return self

    def read(self, usual: ApprovalRule) -> ToolRule:
        return ToolRule(
            self.tool,
            Decision(self.action),
            dict(self.args),
            self.reason,
            roles=frozenset(self.roles),
            principals=frozenset(self.principals),
            agents=frozenset(self.agents),
            platforms=frozenset(self.platforms),
            guilds=frozenset(self.guilds),
            channels=frozenset(self.channels),
            origins=frozenset(self.origins),
            approval=self.rule(usual) if self.said else None,
        )


class RateLimitSection(Section):
    """At most `calls` in `per_s` seconds."""

    calls: Whole = Field(
        ge=1,
        le=100_000,
        description="Calls of a tool that matches the pattern `NAME`, for each asker. A list has several limits, which "
        "all count. A tool of tier 1 or more that no pattern matches has 60 a minute.",
    )
    per_s: Number = Field(gt=0, le=30 * DAY_S, description="Seconds in which they count.")


def _list_limits(value: object) -> object:
    """One limit may stand without a list."""
    return [value] if isinstance(value, dict) else value  # pyright: ignore[reportUnknownVariableType]


def _read_windows(per_hour: int, per_day: int) -> tuple[RateLimit, ...]:
    return tuple(RateLimit(calls, window_s) for calls, window_s in ((per_hour, HOUR_S), (per_day, DAY_S)) if calls)


class RateLimitsSection(Section):
    """How often people may ask, and how often tools may be called."""

    per_user_per_hour: Whole = Field(
        default=20, ge=0, le=100_000, description="Messages of one person on a platform in a sliding hour; 0: no limit."
    )
    per_user_per_day: Whole = Field(default=0, ge=0, le=100_000, description="The same in 24 hours.")
    per_key_per_hour: Whole = Field(
        default=0,
        ge=0,
        le=100_000,
        description="Messages by one API key in a sliding hour, through the page, the API or MCP; 0: no limit.",
    )
    per_key_per_day: Whole = Field(default=0, ge=0, le=100_000, description="The same in 24 hours.")
    tool: dict[str, Annotated[tuple[RateLimitSection, ...], BeforeValidator(_list_limits)]] = Field(
        default_factory=dict[str, tuple[RateLimitSection, ...]]
    )

    def read(self) -> RateLimits:
        return RateLimits(
            by_tool=tuple(
                (pattern, tuple(RateLimit(each.calls, each.per_s) for each in limits))
                for pattern, limits in self.tool.items()
            ),
            per_user=_read_windows(self.per_user_per_hour, self.per_user_per_day),
            per_key=_read_windows(self.per_key_per_hour, self.per_key_per_day),
        )


class ObserverSection(Section):
    """A model that looks at calls of tier 2 and 3 before they run. Its requests are paid like those of the turn."""

    enabled: bool = Field(
        default=True, description="Whether it looks. If not, people are asked; owners also switch it."
    )
    model: Text = Field(
        default="",
        description="Alias of a model, or provider/model. Empty: there is no observer, and people are asked.",
    )
    timeout_s: Number = Field(
        default=_OBSERVER.timeout_s, ge=1, le=300, description="How long it may take; then the answer is no."
    )
    cache_ttl_s: Number = Field(
        default=_OBSERVER.cache_ttl_s,
        ge=0,
        le=DAY_S,
        description="How long a verdict about a call of tier 2 holds for the very same call; 0 asks each time.",
    )
    alert_channel: Id | Literal[""] = Field(
        default="",
        description="Id of the channel where owners are told of calls that it hands on to people, of those that owners "
        "decide about and cannot see where they were wanted, and of channels in which an agent is asked and may not "
        "write.",
    )


class GateSection(Section):
    """The rules for tools. Tiers, modes, roles and rate limits are by tool pattern; the first match in the order of the
    file counts.
    """

    tiers: dict[str, Tier] = Field(
        default_factory=dict[str, Tier],
        description="Risk by tool: 0 runs, 1 within its rate limit, 2 and 3 after the observer or people said yes.",
    )
    rules: tuple[RuleSection, ...] = ()
    mode: Literal[ToolMode.RUN, ToolMode.ASK] = Field(
        default=ToolMode.RUN,
        description="What holds where no rule approves: `run` as the tier demands, or `ask` people each time.",
    )
    modes: dict[str, ToolMode] = Field(
        default_factory=dict[str, ToolMode],
        description="The same by tool: `run`; `ask`, also where a rule approves; or `rules`, which is as `mode` says "
        "where none approves.",
    )
    roles: dict[str, tuple[RoleName, ...]] = Field(
        default_factory=dict[str, tuple[RoleName, ...]],
        description="Roles by tool, of which the asker must have one. An owner has all of them.",
    )
    rate_limits: RateLimitsSection = default_section()
    destinations: tuple[SomeText, ...] | None = Field(
        default=None,
        description="Where tools may send besides the conversation that they are used in: places such as "
        "`discord:123`, hosts and addresses, or patterns of them; hosts in ASCII (`xn--...`). What programs may read "
        "differently, such as an address with a user name, fits no pattern but `*`. Unset: anywhere, but not without a "
        "human after foreign texts.",
    )
    taint: dict[Taint, Watch] = Field(
        default_factory=dict[Taint, Watch],
        description="Kinds of foreign text after which a turn needs a human to remember, plan, reveal, send elsewhere "
        "or use tools of tier 3. All are `on`; `off` trusts that kind.",
    )
    observer: ObserverSection = default_section()
    approvals: DecidersSection = default_section("How people are asked, where a rule does not say otherwise.")
    keep_results_minutes: Number = Field(
        default=30.0,
        ge=0,
        le=24 * 60,
        description="How long the result of a tool that is declared for it answers the same call again; 0 keeps none.",
    )

    def policy(self, generation: int = 0, mask: Callable[[str], str] = str) -> GatePolicy:
        """Returns the policy of the generation with that number, whose secrets `mask` replaces."""
        usual = self.approvals.rule(_APPROVAL)
        watched = self.observer
        owners = replace(usual, deciders=Deciders.ROLE) if usual.deciders is Deciders.REQUESTER else usual
        return GatePolicy(
            tiers=tuple(self.tiers.items()),
            rules=tuple(rule.read(usual) for rule in self.rules),
            rate_limits=self.rate_limits.read(),
            modes=ToolModes(by_tool=tuple(self.modes.items()), default=self.mode),
            roles=tuple((pattern, frozenset[str](roles)) for pattern, roles in self.roles.items()),
            destinations=self.destinations,
            trusted=frozenset(label for label, watch in self.taint.items() if watch == "off"),
            approval=usual,
            owners=owners,
            observer=ObserverPolicy(
                watched.model if watched.enabled else "",
                watched.timeout_s,
                watched.cache_ttl_s,
                Place(PLATFORM, watched.alert_channel) if watched.alert_channel else None,
            ),
            generation=generation,
            results=ResultPolicy(keep_s=self.keep_results_minutes * 60, mask=mask),
        )


_MILLION = 1_000_000
_POLICY = BudgetPolicy()
_CONFIGURED = tuple(kind for kind in BudgetScopeKind if kind is not BudgetScopeKind.RUN)


Key = Annotated[SomeText, BeforeValidator(read_digits)]
"""A platform's id, in the file with quotes or without, or a key as `denizen usage` shows it."""


class BudgetSection(Section):
    """Unset means no limit, and for a single one the limit of all; 0 lets only free requests through."""

    per_day_usd: Decimal | None = Field(
        default=None, ge=0, le=_MILLION, description="At most so much on one day (UTC); unset: no limit."
    )
    per_month_usd: Decimal | None = Field(
        default=None, ge=0, le=_MILLION, description="At most so much in one month (UTC); unset: no limit."
    )

    @property
    def limits(self) -> BudgetLimits:
        return BudgetLimits(self.per_day_usd, self.per_month_usd)


class AgentBudgetSection(BudgetSection):
    """The budget of one agent."""

    when_exhausted: WhenExhausted | None = Field(
        default=None, description="For this agent; unset: as for all (`budgets.when_exhausted`)."
    )


class JobBudgetSection(BudgetSection):
    """The budget of one schedule. Where it is used up, its times are skipped until it renews."""

    per_run_usd: Decimal | None = Field(
        default=None, ge=0, le=_MILLION, description="At most so much for one run; unset: no limit."
    )


class BudgetsSection(Section):
    """Limits of money. The most that a request may cost is reserved before it is sent."""

    currency: Literal["usd"] = Field(default="usd", description="The currency of the budgets.")
    server: BudgetSection = default_section("For everything together.")
    guild: BudgetSection = default_section("For each Discord server.")
    channel: BudgetSection = default_section("For each channel; threads count by their channel.")
    user: BudgetSection = default_section("For each user.")
    agent: BudgetSection = default_section("For each agent.")
    job: BudgetSection = default_section("For each schedule; `schedules.NAME.budget` is for a single one.")
    guilds: dict[Key, BudgetSection] = Field(
        default_factory=dict[str, BudgetSection], description="Other limits for single Discord servers, by id."
    )
    channels: dict[Key, BudgetSection] = Field(
        default_factory=dict[str, BudgetSection], description="Other limits for single channels, by id."
    )
    users: dict[Key, BudgetSection] = Field(
        default_factory=dict[str, BudgetSection],
        description="Other limits for single users, by id, or by a key such as `api_key:NAME`.",
    )
    agents: dict[Key, AgentBudgetSection] = Field(
        default_factory=dict[str, AgentBudgetSection], description="Other limits for single agents, by name."
    )
    warn_at: Number = Field(
        default=float(_POLICY.warn_at),
        gt=0,
        le=1,
        description="The share of a limit from which on it is told to be near: in the log, and to admins.",
    )
    when_exhausted: WhenExhausted = Field(
        default=_POLICY.when_exhausted,
        description="`stop` says so and answers no more; `cheaper` lets the model alias `cheap`, or else `fast`, "
        "answer while that fits.",
    )

    @property
    def policy(self) -> BudgetPolicy:
        single = {
            BudgetScopeKind.GUILD: self.guilds,
            BudgetScopeKind.CHANNEL: self.channels,
            BudgetScopeKind.USER: self.users,
            BudgetScopeKind.AGENT: self.agents,
        }
        return BudgetPolicy(
            usual={kind: getattr(self, kind.value).limits for kind in _CONFIGURED},
            special={
                BudgetScope(kind, key): each.limits for kind, found in single.items() for key, each in found.items()
            },
            warn_at=Decimal(str(self.warn_at)),
            when_exhausted=self.when_exhausted,
            of_agents={name: each.when_exhausted for name, each in self.agents.items() if each.when_exhausted},
        )
