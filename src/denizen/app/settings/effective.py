"""`Settings`, the configuration in effect, as the rest of `app` reads it, and as `denizen config show` prints it.

Only `load` makes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, cast

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from denizen.adapters.discord.client.settings import PLATFORM, POST_LINK, DiscordEndpoints
from denizen.app.home.secrets import FileSecrets, SecretRef
from denizen.app.settings.discord import DiscordLogin, build_endpoints, build_logins
from denizen.app.settings.events import build_events
from denizen.app.settings.fields import Section, copy_fields
from denizen.app.settings.gate import GateSection
from denizen.app.settings.github import GitHubLogin, build_github_logins
from denizen.app.settings.interpolation import InterpolatedText
from denizen.app.settings.knowledge import HomeFolders, SandboxSection
from denizen.app.settings.models import ModelsSection
from denizen.app.settings.problem import ConfigProblem
from denizen.app.settings.projects import build_mirrors
from denizen.app.settings.schedules import build_schedules
from denizen.app.settings.schema import ChannelsSection, Config, LoggingSection, ServerSection
from denizen.app.settings.tools import McpSection, OwnSkillSection, ParameterSection, ToolSection
from denizen.app.settings.yaml_document import ConfigDocument, write_document
from denizen.domain.agent import Agent
from denizen.domain.archiving import ArchivePolicy, OptOuts
from denizen.domain.budget import BudgetLimits, BudgetPolicy, BudgetScope, BudgetScopeKind
from denizen.domain.custom_command import CustomCommand
from denizen.domain.custom_tool import MAX_ARGUMENT_CHARS, CustomTool
from denizen.domain.ids import AgentName
from denizen.domain.issue_mirror import IssueMirror
from denizen.domain.json import Json, JsonObject
from denizen.domain.project import TaskWatcherPolicy
from denizen.domain.record import record
from denizen.domain.schedule import Schedule
from denizen.domain.workflow import Workflow
from denizen.ports.events import EventSettings
from denizen.ports.google import GoogleLogin

DATABASE_FILE = "denizen.db"


def resolve_store_url(url: str, home: Path) -> str:
    """Returns the address of a store. A file of SQLite stands in the home folder, unless its path begins with `/`: it
    is the same one whatever folder a process starts in.
    """
    scheme, there, rest = url.partition(":///")
    if not scheme.startswith("sqlite") or not there or not rest or rest.startswith(("/", ":memory:")):
        return url
    return f"{scheme}{there}{home.absolute() / rest}"


@record
class Simulation:
    """Accounts on a simulated Discord, which replace the configured ones. `page` is the address where people look at
    it.
    """

    accounts: tuple[DiscordLogin, ...]
    endpoints: DiscordEndpoints
    page: str = ""


@record
class Settings:
    """The configuration in effect: validated, immutable, with all implied values filled in.

    `document` is the file itself, before interpolation; `secrets` has the values of the same moment. `digest` is the
    sha256 of what was written and of the persona texts: it tells two generations apart and holds no secret.
    """

    home: Path
    config: Config
    agents: Mapping[AgentName, Agent]
    default_agent: AgentName
    secrets: FileSecrets
    digest: str
    document: ConfigDocument = field(repr=False)
    workflows: Mapping[str, Workflow] = field(default_factory=dict[str, Workflow])
    broken_workflows: Mapping[str, tuple[ConfigProblem, ...]] = field(
        default_factory=dict[str, tuple[ConfigProblem, ...]]
    )
    """By name, what is wrong with the workflows that cannot be used."""
    warnings: tuple[ConfigProblem, ...] = ()
    simulation: Simulation | None = None

    @property
    def store_url(self) -> str:
        return resolve_store_url(self.config.store.url or f"sqlite:///{DATABASE_FILE}", self.home)

    @property
    def server(self) -> ServerSection:
        return self.config.server

    @property
    def models(self) -> ModelsSection:
        return self.config.models

    @property
    def channels(self) -> ChannelsSection:
        return self.config.channels

    @property
    def discord_accounts(self) -> tuple[DiscordLogin, ...]:
        """The accounts that have a token; none when Discord is switched off."""
        if self.simulation is not None:
            return self.simulation.accounts
        return build_logins(self.channels.discord, self.secrets)

    @property
    def discord_endpoints(self) -> DiscordEndpoints:
        if self.simulation is not None:
            return self.simulation.endpoints
        return build_endpoints(self.channels.discord, self.secrets)

    @property
    def github_accounts(self) -> tuple[GitHubLogin, ...]:
        """The accounts that have a login; none when GitHub is switched off, or while Discord is simulated."""
        return () if self.simulation is not None else build_github_logins(self.channels.github, self.secrets)

    @property
    def archive(self) -> ArchivePolicy:
        section = self.config.archive
        return ArchivePolicy(
            enabled=section.enabled,
            retention_days=section.retention_days,
            backfill=section.backfill,
            backfill_limit_per_room=section.backfill_per_room,
            channels={PLATFORM: frozenset(section.channels)},
            embeddings=section.embeddings,
            opt_outs=OptOuts(
                users=frozenset(section.opt_out_users),
                roles=frozenset(section.opt_out_roles),
                channels=frozenset(section.opt_out_channels),
            ),
            post_links={PLATFORM: POST_LINK},
        )

    @property
    def commands(self) -> tuple[CustomCommand, ...]:
        """The commands that the operator added, in the order of the file."""
        sections = self.config.commands.items()
        return tuple(copy_fields(section, CustomCommand, name=name) for name, section in sections)

    @property
    def task_watcher(self) -> TaskWatcherPolicy | None:
        """None where it is off."""
        section = self.config.task_watcher
        return section.build_policy(self.default_agent) if section.enabled else None

    @property
    def issue_mirrors(self) -> tuple[IssueMirror, ...]:
        """The projects that mirror issues; none while GitHub is switched off, or Discord is simulated."""
        github = self.channels.github
        is_off = not github.enabled or self.simulation is not None
        return () if is_off else build_mirrors(self.config.projects, github)

    @property
    def schedules(self) -> Mapping[str, Schedule]:
        return build_schedules(self.config.schedules, self.agents, self.default_agent, self.secrets)

    @property
    def events(self) -> EventSettings:
        """Raises NeedsAttention for a secret of a webhook that is missing or could be guessed."""
        return build_events(
            self.config.listeners, self.config.webhooks, self.config.events, self.default_agent, self.secrets
        )

    @property
    def tools(self) -> Mapping[str, ToolSection]:
        return self.config.tools

    @property
    def skills(self) -> Mapping[str, OwnSkillSection]:
        return self.config.skills

    @property
    def custom_tools(self) -> tuple[CustomTool, ...]:
        """The custom tools, in the order of the file."""
        return tuple(
            copy_fields(
                section,
                CustomTool,
                name=name,
                parameters={key: _build_schema(each) for key, each in section.parameters.items()},
            )
            for name, section in self.config.custom_tools.items()
        )

    @property
    def mcp(self) -> McpSection:
        return self.config.mcp

    @property
    def google_login(self) -> GoogleLogin | None:
        """None without a client at Google. Raises NeedsAttention for a secret that is missing."""
        return self.config.google.build_login(self.secrets)

    @property
    def gate(self) -> GateSection:
        return self.config.gate

    @property
    def budgets(self) -> BudgetPolicy:
        policy = self.config.budgets.policy
        limited = [each for each in self.schedules.values() if each.budget.limits != BudgetLimits()]
        jobs = {BudgetScope(BudgetScopeKind.JOB, each.id): each.budget.limits for each in limited}
        return replace(policy, special={**policy.special, **jobs})

    @property
    def folders(self) -> HomeFolders:
        return HomeFolders(self.home, self.config.folders)

    @property
    def sandbox(self) -> SandboxSection:
        return self.config.sandbox

    @property
    def logging(self) -> LoggingSection:
        return self.config.logging

    @property
    def logs_folder(self) -> Path:
        """The folder of the log that is kept to be searched."""
        return self.home / "logs"

    @property
    def log_file(self) -> Path | None:
        return self.home / self.logging.file if self.logging.file else None


def _build_schema(section: ParameterSection) -> JsonObject:
    values: list[Json] = list(section.enum)
    about: JsonObject = {"description": section.description} if section.description else {}
    bounds: JsonObject = {"enum": values} if values else {"maxLength": MAX_ARGUMENT_CHARS}
    return {"type": "string", **about, **bounds}


DEFAULT_MARK = "default"


def render_settings(settings: Settings) -> str:
    """Returns every setting in effect as YAML; those that the file does not have carry the comment `# default`. Secrets
    stay references. The text can be read again and means the same.
    """
    return write_document(_section(settings.config, settings.document.tree), (2, 2))


def _section(section: Section, written: Json) -> CommentedMap:
    fields: dict[str, object] = {name: getattr(section, name) for name in _keys(section)}
    return _mapping({**fields, **(section.model_extra or {})}, written)


def _keys(section: Section) -> list[str]:
    return [name for name in type(section).model_fields if name not in section.foreign_keys]


def _mapping(values: Mapping[str, object], written: Json) -> CommentedMap:
    shown = CommentedMap()
    for name, value in values.items():
        if value is None:
            continue
        known = written.get(name) if isinstance(written, Mapping) else None
        rendered = _value(value, known)
        shown[name] = rendered
        is_short_form = isinstance(written, str) and rendered == written
        if known is None and not is_short_form and not (isinstance(rendered, CommentedMap) and rendered):
            cast("Any", shown).yaml_add_eol_comment(DEFAULT_MARK, name, column=0)
    return shown


def _value(value: object, written: Json) -> object:
    if isinstance(value, Section):
        return _section(value, written)
    if isinstance(value, Mapping):
        return _mapping(cast("Mapping[str, object]", value), written)
    if isinstance(value, tuple | list):
        return _sequence(list(cast("tuple[object, ...]", value)), written)
    if isinstance(value, SecretRef):
        return value.written
    if isinstance(value, InterpolatedText):
        return value.template
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def _sequence(values: list[object], written: Json) -> CommentedSeq:
    # One section may stand without a list.
    known = written if isinstance(written, list) else [written] if isinstance(written, Mapping) else []
    shown = CommentedSeq(
        _value(value, known[index] if index < len(known) else None) for index, value in enumerate(values)
    )
    if not any(isinstance(value, CommentedMap | CommentedSeq) for value in cast("list[object]", shown)):
        cast("Any", shown).fa.set_flow_style()
    return shown
