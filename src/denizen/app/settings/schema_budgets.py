"""The shape of `budgets`: limits of money, and what they mean (`domain/budget`)."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from denizen.app.settings.fields import Number, Section, SomeText, read_digits
from denizen.domain.budget import BudgetPolicy, Limits, Scope, ScopeKind, WhenExhausted

_MILLION = 1_000_000
_POLICY = BudgetPolicy()


Key = Annotated[SomeText, BeforeValidator(read_digits)]
"""A platform's id, in the file with quotes or without, or a key as `denizen usage` shows it."""


class BudgetSection(Section):
    """Unset means no limit, and for a single one what holds for all; 0 lets only what is free through."""

    per_day_usd: Decimal | None = Field(
        default=None, ge=0, le=_MILLION, description="At most so much on one day (UTC); unset: no limit."
    )
    per_month_usd: Decimal | None = Field(
        default=None, ge=0, le=_MILLION, description="At most so much in one month (UTC); unset: no limit."
    )

    @property
    def limits(self) -> Limits:
        return Limits(self.per_day_usd, self.per_month_usd)


class AgentBudgetSection(BudgetSection):
    """Of one agent."""

    when_exhausted: WhenExhausted | None = Field(
        default=None, description="For this agent; unset: as for all (`budgets.when_exhausted`)."
    )


class BudgetsSection(Section):
    """Limits of money. What a request may cost at most is reserved before it is sent."""

    currency: Literal["usd"] = "usd"
    server: BudgetSection = Field(default_factory=BudgetSection, description="For everything together.")
    guild: BudgetSection = Field(default_factory=BudgetSection, description="For each Discord server.")
    channel: BudgetSection = Field(
        default_factory=BudgetSection, description="For each channel; threads count by their channel."
    )
    user: BudgetSection = Field(default_factory=BudgetSection, description="For each user.")
    agent: BudgetSection = Field(default_factory=BudgetSection, description="For each agent.")
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
            ScopeKind.GUILD: self.guilds,
            ScopeKind.CHANNEL: self.channels,
            ScopeKind.USER: self.users,
            ScopeKind.AGENT: self.agents,
        }
        return BudgetPolicy(
            usual={kind: getattr(self, kind.value).limits for kind in ScopeKind},
            special={Scope(kind, key): each.limits for kind, found in single.items() for key, each in found.items()},
            warn_at=Decimal(str(self.warn_at)),
            when_exhausted=self.when_exhausted,
            of_agents={name: each.when_exhausted for name, each in self.agents.items() if each.when_exhausted},
        )
