"""The shape of `denizen.yaml`: `Config` is the whole file, with one field for each section.

The sections stand in the modules of their topics: `agents`, `models`, `discord`, `github`, `tools`, `gate` (with
budgets) and `knowledge` (with archive, memory, embeddings, folders and sandbox); the small ones are here. A field has
its type, default, bounds and description in one place, from which `docs/reference/configuration.md` is generated.
`checks` looks at what belongs together across sections, `explain` words the errors.
"""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from denizen.adapters.store import MAX_CONNECTIONS
from denizen.app.settings.agents import AgentDefaultsSection, AgentSection
from denizen.app.settings.backups import BackupsSection
from denizen.app.settings.discord import DiscordSection
from denizen.app.settings.event_sources import EventsSection
from denizen.app.settings.events import EventName, ListenerSection, WebhooksSection
from denizen.app.settings.fields import (
    AgentNameText,
    Name,
    Secret,
    Section,
    SomeText,
    StoreUrl,
    Text,
    Whole,
    default_section,
    refuse,
)
from denizen.app.settings.gate import BudgetsSection, GateSection
from denizen.app.settings.github import GitHubSection
from denizen.app.settings.google import GoogleSection
from denizen.app.settings.knowledge import (
    ArchiveSection,
    EmbeddingsSection,
    FoldersSection,
    KnowledgeSection,
    MemorySection,
    SandboxSection,
)
from denizen.app.settings.models import ModelsSection
from denizen.app.settings.projects import ProjectName, ProjectSection, TaskWatcherSection
from denizen.app.settings.schedules import ScheduleName, ScheduleSection
from denizen.app.settings.telemetry import TelemetrySection
from denizen.app.settings.tools import (
    CommandName,
    CommandSection,
    CustomToolSection,
    McpSection,
    OwnSkillSection,
    SkillName,
    ToolName,
    ToolSection,
)
from denizen.domain.principal import RoleName
from denizen.engine.configuration.tool_policy import DAILY_MESSAGES

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?|https?://\[[0-9A-Fa-f:]+\](?::\d+)?")


class StoreSection(Section):
    """Where the data is kept."""

    url: StoreUrl = Field(
        default="",
        description="Empty for `denizen.db` in the home folder, or `sqlite:///PATH`, relative to the home folder, or "
        "`postgresql://...`.",
    )
    move_to: StoreUrl = Field(
        default="",
        description="The database to which `/migrate to-postgres` and the page of the store move everything: "
        "`postgresql://...` with `${NAME}` for its password.",
    )
    max_connections: Whole = Field(
        default=MAX_CONNECTIONS,
        ge=2,
        le=200,
        description="Postgres: how many connections the store opens at most, when it needs them. Three of five write.",
    )


class ApiKeySection(Section):
    """A key with which a program may use the API."""

    name: Name = Field(description="Names the key in logs and usage.")
    key: Secret = Field(description="The key that clients send as a bearer token.")
    roles: tuple[RoleName, ...] = Field(default=(RoleName.MEMBER,), description="What the key may do.")

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if self.key is None or self.key.optional:
            raise refuse(
                "an API key must not be empty.", "Write key: ${DENIZEN_API_KEY}, without a default.", key="key"
            )
        return self


class UserLimitsSection(Section):
    """How much people with an account may use."""

    messages_per_day: Whole = Field(
        default=DAILY_MESSAGES,
        ge=0,
        le=100_000,
        description="Messages of one member in 24 hours, on the page and with own API keys; 0: no limit. Admins and "
        "owners have none.",
    )


class OAuthSection(Section):
    """An application at another site with which people sign in. Its callback is `/login/SITE/callback`."""

    client_id: SomeText = Field(description="Id of the application there.")
    client_secret: Secret = Field(description="Its secret.")

    @model_validator(mode="after")
    def _has_secret(self) -> Self:
        if self.client_secret is None or self.client_secret.optional:
            raise refuse(
                "the secret must not be empty.",
                "Write client_secret: ${GITHUB_CLIENT_SECRET}, without a default.",
                key="client_secret",
            )
        return self


class SignInSection(Section):
    """Other sites with whose accounts people sign in."""

    github: OAuthSection | None = Field(default=None, description="An OAuth app of GitHub.")
    discord: OAuthSection | None = Field(default=None, description="An application of Discord.")


class ServerSection(Section):
    """The web server."""

    host: SomeText = Field(default="127.0.0.1", description="Address to listen on.")
    port: Whole = Field(default=8650, ge=0, le=65_535, description="Port to listen on; 0 takes a free one.")
    api_keys: tuple[ApiKeySection, ...] = ()
    cors_origins: tuple[Text, ...] = Field(default=(), description="Web sites whose scripts may call the API.")
    trusted_proxies: tuple[Text, ...] = Field(
        default=(),
        description="Addresses or networks of reverse proxies on other machines: they may hold as many connections as "
        "this machine, and `X-Forwarded-For` tells who is behind them.",
    )

    public_url: Text = Field(
        default="",
        description="Address under which people know the server, such as https://chat.example.org; for links and for "
        "the way back from other sites. Empty: as the browser calls it.",
    )
    registration: Literal["invite", "open"] = Field(
        default="invite", description="Who may make an account: those who were invited, or everybody."
    )
    admins: tuple[SomeText, ...] = Field(
        default=(),
        description="People who are admins: verified e-mails, names of GitHub users, or `discord:NAME`. An e-mail "
        "counts when an invitation was made for it, or GitHub or Discord has verified it.",
    )
    limits: UserLimitsSection = default_section()
    sign_in: SignInSection = default_section()

    @field_validator("public_url")
    @classmethod
    def _own_address(cls, url: str) -> str:
        if url and not _ORIGIN.fullmatch(url):
            raise refuse(
                "this is not the address of a server.", "Write scheme and host, such as https://chat.example.org."
            )
        return url

    @field_validator("cors_origins")
    @classmethod
    def _single_sites(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not _ORIGIN.fullmatch(origin):
                fix = "Write each as scheme and host, such as https://chat.example.org, without a path or `*`."
                raise refuse("this is not the origin of one web site.", fix)
        return origins

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, proxies: tuple[str, ...]) -> tuple[str, ...]:
        for proxy in proxies:
            try:
                ip_network(proxy, strict=False)
            except ValueError:
                raise refuse("this is no address or network.", "Write it like 10.0.0.5 or 172.18.0.0/16.") from None
        return proxies


class TerminalSection(Section):
    """The channel of the command line."""

    enabled: bool = Field(default=True, description="Whether `denizen chat` and `denizen ask` work.")


class WebSection(Section):
    """The channel of the web page."""

    enabled: bool = Field(default=True, description="Whether the page is served.")
    model_titles: bool = Field(
        default=True,
        description="Whether the agent's model names a new chat, with a small request of its own; else the first words "
        "of its message do.",
    )


class ApiSection(Section):
    """The channel of OpenAI clients."""

    enabled: bool = Field(default=True, description="Whether the OpenAI-compatible API is served.")


class McpServingSection(Section):
    """The channel of MCP clients."""

    enabled: bool = Field(default=True, description="Whether the MCP server at `/mcp` is served.")


class ChannelsSection(Section):
    """Where agents can be talked to."""

    terminal: TerminalSection = default_section()
    web: WebSection = default_section()
    api: ApiSection = default_section()
    mcp: McpServingSection = default_section()
    discord: DiscordSection = default_section()
    github: GitHubSection = default_section()


class LoggingSection(Section):
    """The log."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest severity that is logged."
    )
    format: Literal["console", "json"] = Field(default="console", description="For people, or one JSON object a line.")
    file: Text = Field(default="", description="Relative to the home folder; empty: standard error.")


class Config(Section):
    """The whole file."""

    store: StoreSection = default_section()
    server: ServerSection = default_section()
    models: ModelsSection = default_section()
    agent_defaults: AgentDefaultsSection = default_section(
        "Any key of an agent, such as `model`, `limits` or `style`: it holds for every agent that neither "
        "says it itself nor has it from its own preset. Groups such as `limits` are joined key by key, lists replaced."
    )
    agents: dict[AgentNameText, AgentSection] = Field(default_factory=dict[str, AgentSection])
    default_agent: Text = Field(
        default="",
        description="Name of the agent that answers when nobody is named; unset: `denizen`, or the only one.",
    )
    channels: ChannelsSection = default_section()
    archive: ArchiveSection = default_section()
    commands: dict[CommandName, CommandSection] = Field(default_factory=dict[str, CommandSection])
    projects: dict[ProjectName, ProjectSection] = Field(
        default_factory=dict[str, ProjectSection], description="Projects that mirror something outside, by name or id."
    )
    task_watcher: TaskWatcherSection = default_section()
    schedules: dict[ScheduleName, ScheduleSection] = Field(
        default_factory=dict[str, ScheduleSection],
        description="Prompts that agents get at set times, by name. `denizen schedules add` writes here.",
    )
    listeners: dict[EventName, ListenerSection] = Field(
        default_factory=dict[str, ListenerSection], description="What is done about events, by name."
    )
    webhooks: WebhooksSection = default_section()
    events: EventsSection = default_section()
    tools: dict[str, ToolSection] = Field(default_factory=dict[str, ToolSection])
    skills: dict[SkillName, OwnSkillSection] = Field(
        default_factory=dict[str, OwnSkillSection],
        description="Your own skills, by the names of their folders. `denizen skill enable` writes here.",
    )
    custom_tools: dict[ToolName, CustomToolSection] = Field(
        default_factory=dict[str, CustomToolSection], description="Programs as tools of agents, by name."
    )
    mcp: McpSection = default_section()
    google: GoogleSection = default_section()
    gate: GateSection = default_section()
    budgets: BudgetsSection = default_section()
    folders: FoldersSection = default_section()
    knowledge: KnowledgeSection = default_section()
    sandbox: SandboxSection = default_section()
    memory: MemorySection = default_section()
    embeddings: EmbeddingsSection = default_section()
    backups: BackupsSection = default_section()
    logging: LoggingSection = default_section()
    telemetry: TelemetrySection = default_section()
