"""Reads `denizen.yaml` and everything that belongs to it into one immutable `Settings`, or one error that lists every
problem.

The order: syntax, interpolation, references, shape, implied values, persona files. References and shape each find what
they can, so that one reading shows all there is to correct; persona files are read once the rest is right. The builder
and the reloader call `load_settings`, doctor and the editors `find_config_problems`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from pydantic import ValidationError

from denizen.app.home.secrets import SECRETS_FILE, FileSecrets, load_secrets
from denizen.app.settings.agents import AgentSection, build_agent, fill_agent, find_default_conflicts
from denizen.app.settings.checks import (
    BUILTIN,
    DEFAULT_AGENT,
    DEFAULT_MODEL,
    STANDARD_ALIASES,
    ReferenceOutline,
    draw_outline,
    find_broken_references,
    find_idle_tools,
    find_plain_secrets,
)
from denizen.app.settings.discord import DiscordPolicySection, find_account_problems, find_left_out, is_account_token
from denizen.app.settings.effective import Settings, Simulation
from denizen.app.settings.event_sources import find_source_warnings
from denizen.app.settings.events import (
    KnownEventTypes,
    find_event_problems,
    find_idle_listeners,
    find_idle_triggers,
    find_token_routes,
)
from denizen.app.settings.explain import explain_errors
from denizen.app.settings.fields import Section
from denizen.app.settings.github import (
    ACCOUNTS,
    GitHubPolicySection,
    find_github_left_out,
    find_github_problems,
    is_github_login,
)
from denizen.app.settings.hooks import find_misspelt_variables
from denizen.app.settings.interpolation import ExpandedTree, expand_tree
from denizen.app.settings.knowledge import ContextFileReader, HomeFolders
from denizen.app.settings.models import AliasSection, ModelsSection, ProviderSection
from denizen.app.settings.persona import ANSWER_FILE, BUILT_IN_PERSONA, PLANNER_FILE, PersonaReader
from denizen.app.settings.problem import ConfigProblem, KeyPath, config_error
from denizen.app.settings.projects import find_mirror_problems, find_watcher_problems
from denizen.app.settings.schedules import (
    CHANNEL,
    DIRECT,
    LOG,
    find_schedule_problems,
    find_schedule_warnings,
    find_undelivered,
)
from denizen.app.settings.schema import ChannelsSection, Config
from denizen.app.settings.workflows import WorkflowFiles, WorkflowSurroundings, load_workflows
from denizen.app.settings.yaml_document import ConfigDocument, parse_document
from denizen.domain.agent import Agent
from denizen.domain.event_listener import EVENT_VARIABLES
from denizen.domain.ids import AgentName
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.schedule import SCHEDULE_VARIABLES
from denizen.domain.workflow import Workflow
from denizen.domain.workflow_compute import list_items

CONFIG_FILE = "denizen.yaml"

_PLAIN_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "PWD", "SHELL", "LANG", "TZ", "PATH", "TMPDIR", "HOSTNAME"})
"""Variables whose values are no secrets and occur in many texts; they are not masked."""


PROVIDERS: KeyPath = ("models", "providers")


@record
class ConfigResult:
    """The result of a reading: settings, or the problems that prevent them. A broken workflow prevents nothing."""

    settings: Settings | None
    problems: tuple[ConfigProblem, ...]

    def find_broken(self, known: Collection[str] = ()) -> tuple[ConfigProblem, ...]:
        """Returns everything that is wrong with workflows, without those that are known to be broken."""
        if self.settings is None:
            return ()
        found = self.settings.broken_workflows
        return tuple(chain.from_iterable(each for name, each in found.items() if name not in known))


def load_settings(
    home: Path,
    environment: Mapping[str, str],
    *,
    known_tools: Collection[str] | None = None,
    needs_models: bool = True,
    simulation: Simulation | None = None,
) -> Settings:
    """Reads the configuration of a home folder; a missing file means the defaults.

    `known_tools` are the names of skills that may be configured; None leaves them unchecked. Without `needs_models` an
    unset key of a provider is no problem until its model is asked. A `simulation` stands in for the accounts on
    Discord. Raises InvalidInput (`config_invalid`) that lists every problem with file, line, key and fix, and never a
    secret.
    """
    secrets = load_secrets(home, environment)
    finding = examine(home, read_config(home), secrets, known_tools, needs_models=needs_models, simulation=simulation)
    if finding.settings is None:
        raise config_error(finding.problems)
    return finding.settings


def find_config_problems(
    home: Path, environment: Mapping[str, str], *, known_tools: Collection[str] | None = None
) -> tuple[ConfigProblem, ...]:
    """Returns the problems of a home folder's configuration and of its workflows, empty when all of it can be used.
    Raises InvalidInput only when a file cannot be read at all.
    """
    found = examine(home, read_config(home), load_secrets(home, environment), known_tools)
    return found.problems + found.find_broken()


def read_config(home: Path) -> str:
    """Returns the text of the configuration file; empty when there is none. Raises InvalidInput when it cannot be
    read.
    """
    file = home / CONFIG_FILE
    try:
        return file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        near = home / "denizen.yml"
        if near.exists():
            problem = ConfigProblem(
                file=near,
                line=0,
                column=0,
                path=(),
                message="this name is not read.",
                fix=f"Rename it to {CONFIG_FILE}.",
            )
            raise config_error([problem]) from None
        return ""
    except (OSError, UnicodeDecodeError):
        problem = ConfigProblem(
            file=file,
            line=0,
            column=0,
            path=(),
            message="cannot be read.",
            fix="Make it a UTF-8 text file that Denizen's user may read.",
        )
        raise config_error([problem]) from None


def examine(
    home: Path,
    text: str,
    secrets: FileSecrets,
    known_tools: Collection[str] | None,
    *,
    needs_models: bool = True,
    simulation: Simulation | None = None,
    workflow_texts: Mapping[str, str | None] | None = None,
) -> ConfigResult:
    """Reads a configuration text as if it were the file of this home folder, and the texts of workflows as if they were
    its files; None stands for a workflow that is not there.
    """
    document = parse_document(text, home / CONFIG_FILE)
    if isinstance(document, ConfigProblem):
        return ConfigResult(None, (document,))
    expansion = expand_tree(document.tree, secrets.variables)
    outline = draw_outline(expansion.tree)
    needed, warnings = _sort_missing(document, expansion, outline, needs_models=needs_models)
    problems = [*needed, *find_plain_secrets(document)]
    told = {problem.path for problem in problems}
    broken = find_broken_references(document, expansion.tree, known_tools)
    problems += [each for each in broken if each.path not in told]  # nor are they to quote what may be a secret
    for path in expansion.malformed:
        fix = "Write ${NAME} or ${NAME:-default}; for a plain `${` write `$${`."
        problems.append(document.problem(path, "this `${` begins no reference.", fix))
    tree, left_out = _without_unusable_providers(document, expansion, outline)
    config = _validate(document, tree, problems)
    if config is None:
        return ConfigResult(None, tuple(problems))
    config = add_implied(config, outline)
    personas, contexts = PersonaReader(home, document), ContextFileReader(HomeFolders(home, config.folders), document)
    contexts.check()
    agents = {
        AgentName(name): build_agent(
            name,
            section,
            persona=personas.read(name, section),
            context_files=contexts.read(name, skip_global=section.skip_global_context),
            core_memory=personas.read_core_memory(name),
            plan_texts=(personas.read_plan_text(name, PLANNER_FILE), personas.read_plan_text(name, ANSWER_FILE)),
        )
        for name, section in config.agents.items()
    }
    problems += [
        *find_default_conflicts(document, config.agents, config.agent_defaults),
        *personas.problems,
        *contexts.problems,
        *find_account_problems(document, config.channels.discord, secrets),
        *find_github_problems(document, config.channels.github),
        *find_schedule_problems(document, config.schedules, config.default_agent, config.channels.discord),
        *find_watcher_problems(
            document, config.task_watcher, config.default_agent, config.channels.discord, config.tools
        ),
        *find_mirror_problems(document, config.projects, config.channels.github),
        *find_event_problems(
            document, config.listeners, config.webhooks, config.default_agent, config.channels.discord, secrets
        ),
    ]
    surroundings = WorkflowSurroundings(agents=config.agents, routes=config.webhooks.routes)
    workflows = load_workflows(home, surroundings, workflow_texts)
    if problems:
        return ConfigResult(None, tuple(problems))
    has_discord = simulation is not None or bool(config.channels.discord.accounts)
    types = KnownEventTypes.gather(
        config.webhooks, config.events, has_discord=has_discord, has_github=bool(config.channels.github.accounts)
    )
    written = digest_input(document.tree, agents, contexts.folders, workflows)
    settings = Settings(
        home=home,
        config=config,
        agents=MappingProxyType(agents),
        default_agent=AgentName(config.default_agent),
        secrets=secrets.knowing(expansion.names - _PLAIN_VARIABLES),
        digest=hashlib.sha256(written.encode()).hexdigest(),
        document=document,
        workflows=MappingProxyType(dict(workflows.workflows)),
        broken_workflows=MappingProxyType(dict(workflows.broken)),
        warnings=(
            *warnings,
            *chain.from_iterable(workflows.broken.values()),
            *left_out,
            *(() if simulation is not None else find_left_out(document, config.channels.discord, secrets)),
            *find_github_left_out(document, config.channels.github, secrets),
            *_exposed(secrets),
            *find_idle_tools(document, tree),
            *(() if has_discord else find_undelivered(document, _list_deliveries(config))),
            *find_schedule_warnings(document, config.schedules),
            *_find_agent_variables(document, config.agents),
            *find_token_routes(document, config.webhooks),
            *find_source_warnings(document, config.events, _list_awaited(config, workflows.workflows)),
            *find_idle_listeners(document, config.listeners, config.webhooks, types),
            *find_idle_triggers(workflows.documents, workflows.workflows, config.webhooks, types),
        ),
        simulation=simulation,
    )
    return ConfigResult(settings, ())


def _find_agent_variables(document: ConfigDocument, agents: Mapping[str, AgentSection]) -> Iterator[ConfigProblem]:
    """Yields a warning for each misspelt variable in the hooks of agents, whatever triggers their turns."""
    for name, section in agents.items():
        known = (*SCHEDULE_VARIABLES, *EVENT_VARIABLES)
        yield from find_misspelt_variables(document, ("agents", name, "hooks"), section.hooks, known)


def _list_awaited(config: Config, workflows: Mapping[str, Workflow]) -> list[str]:
    """Returns the types of events that listeners and workflows in force wait for."""
    triggers = [
        node for each in workflows.values() if each.enabled for node in each.triggers if node.type == "on_event"
    ]
    return [
        *(pattern for each in config.listeners.values() if each.enabled for pattern in each.on),
        *(str(pattern) for node in triggers for pattern in list_items(node.settings["on"])),
    ]


def _list_deliveries(config: Config) -> Iterator[KeyPath]:
    """Yields the places of the configuration that deliver to Discord."""
    for name, schedule in config.schedules.items():
        if schedule.delivery.to in (CHANNEL, DIRECT):
            yield "schedules", name, "delivery"
    if config.task_watcher.enabled and config.task_watcher.delivery.to != LOG:
        yield "task_watcher", "delivery"
    for name, listener in config.listeners.items():
        if listener.channel:
            yield "listeners", name, "channel"
    for name, route in config.webhooks.routes.items():
        if route.channel:
            yield "webhooks", "routes", name, "channel"


def digest_input(
    written: Mapping[str, Json], agents: Mapping[AgentName, Agent], folders: HomeFolders, workflows: WorkflowFiles
) -> str:
    """Returns the text that the digest is taken of: the tree as written, without comments and layout, the agents' own
    texts and context files, whether there is knowledge to look into, and the workflows.
    """
    texts = {name: agent.instructions for name, agent in agents.items()}
    personas = {name: [pair for pair in each.persona if pair[0] != BUILT_IN_PERSONA] for name, each in texts.items()}
    contexts = {name: (each.context_files, each.core_memory, each.planner, each.answer) for name, each in texts.items()}
    flows = {name: (each.digest, each.enabled, each.description) for name, each in workflows.workflows.items()}
    broken = {name: [str(each) for each in problems] for name, problems in workflows.broken.items()}
    found = [written, personas, contexts, folders.has_knowledge(list(agents)), flows, broken]
    return json.dumps(found, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _validate(document: ConfigDocument, tree: dict[str, Json], problems: list[ConfigProblem]) -> Config | None:
    """Returns the validated file; None and problems otherwise. An error where a problem is known already, such as a
    missing variable, says nothing new and is dropped.
    """
    told = {problem.path for problem in problems}
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        found = list(explain_errors(error, document, tree))
    problems += [each for each in found if not any(each.path[: len(path)] == path for path in told if path)]
    return None


def _sort_missing(
    document: ConfigDocument, expansion: ExpandedTree, outline: ReferenceOutline, *, needs_models: bool
) -> tuple[list[ConfigProblem], list[ConfigProblem]]:
    """Returns problems for unset variables that are needed, and warnings for those that are not."""
    needed: list[ConfigProblem] = []
    unneeded: list[ConfigProblem] = []
    for path, name in expansion.missing:
        idle = _is_idle(path, expansion.tree, outline)
        is_key_alone = not idle and not needs_models and path[:2] == PROVIDERS and path[3:] == ("api_key",)
        ending = _without_it(path) if idle else ", so its models cannot be asked." if is_key_alone else "."
        message = f"the variable {name} is not set{ending}"
        home = document.file.parent
        fix = f"Add a line {name}=... to {home / SECRETS_FILE}, or set it in the environment."
        (unneeded if idle or is_key_alone else needed).append(document.problem(path, message, fix, variable=name))
    return needed, unneeded


def _is_idle(path: KeyPath, tree: Mapping[str, Json], outline: ReferenceOutline) -> bool:
    """Returns whether one can do without the value there: a provider that nobody names, a skill that is off, a bot's
    token.
    """
    if path[:2] == PROVIDERS:
        return str(path[2]) not in outline.used_providers
    if path[0] == "tools" or path[:2] == ("mcp", "servers"):
        section: Json = tree
        for key in path[: 2 if path[0] == "tools" else 3]:
            section = section.get(str(key)) if isinstance(section, Mapping) else None
        return isinstance(section, Mapping) and section.get("enabled") is False
    return is_account_token(path) or is_github_login(path) or path[:3] + path[4:] == (*ACCOUNTS, "webhook_secret")


def _without_it(path: KeyPath) -> str:
    if is_account_token(path):
        return f", so '{path[3]}' stays away from Discord."
    if is_github_login(path):
        return f", so '{path[3]}' stays away from GitHub."
    if path[:3] == ACCOUNTS:
        return f", so webhooks for '{path[3]}' are refused."
    return ", but nothing uses this yet."


def _without_unusable_providers(
    document: ConfigDocument, expansion: ExpandedTree, outline: ReferenceOutline
) -> tuple[dict[str, Json], list[ConfigProblem]]:
    """Removes the providers that nobody names and that miss a variable other than their key. (A key is only asked for
    when it is used.)
    """
    unusable = {
        str(path[2])
        for path, _ in expansion.missing
        if path[:2] == PROVIDERS and path[3:] != ("api_key",) and _is_idle(path, {}, outline)
    }
    models = expansion.tree.get("models")
    providers = models.get("providers") if isinstance(models, Mapping) else None
    if not unusable or not isinstance(models, Mapping) or not isinstance(providers, Mapping):
        return expansion.tree, []
    kept: dict[str, Json] = {name: provider for name, provider in providers.items() if name not in unusable}
    message = "this provider is left out, because a variable that it names is not set."
    warnings = [
        document.problem(("models", "providers", name), message, "Set the variable, or take the provider out.")
        for name in sorted(unusable)
    ]
    return {**expansion.tree, "models": {**models, "providers": kept}}, warnings


def _exposed(secrets: FileSecrets) -> tuple[ConfigProblem, ...]:
    if not secrets.readable_by_others:
        return ()
    file = secrets.home / SECRETS_FILE
    return (
        ConfigProblem(
            file=file,
            line=0,
            column=0,
            path=(),
            message="other users of this machine can read it.",
            fix=f"chmod 600 {file}",
        ),
    )


_Account = TypeVar("_Account", bound=Section)


def add_implied(config: Config, outline: ReferenceOutline) -> Config:
    """Returns the configuration with everything filled in that the file leaves open, so that no reader has to know the
    rules.

    Without a provider there is the embedded one, and all three aliases are its model. With providers, `fast` and
    `quality` follow `balanced` or each other; `balanced` itself is never guessed. Where only a provider is named, its
    model is meant. Agents get the values of their preset and those of all agents, accounts the shared keys of their
    platform.
    """
    written = config.agents or {DEFAULT_AGENT: AgentSection()}
    agents = {name: fill_agent(section, config.agent_defaults) for name, section in written.items()}
    default = config.default_agent or (DEFAULT_AGENT if DEFAULT_AGENT in agents else next(iter(agents)))
    return config.model_copy(
        update={
            "models": _models(config.models, outline, agents.values()),
            "agents": agents,
            "default_agent": default,
            "channels": _channels(config.channels),
        }
    )


def _models(models: ModelsSection, outline: ReferenceOutline, agents: Iterable[AgentSection]) -> ModelsSection:
    providers, aliases = dict(models.providers), dict(models.aliases)
    if BUILTIN not in providers and (not outline.providers or BUILTIN in outline.used_providers):
        providers[BUILTIN] = ProviderSection(kind="embedded")
    for name, stand_ins in STANDARD_ALIASES.items():
        if name in models.aliases:
            continue
        if not outline.providers:
            aliases[name] = AliasSection(model=f"{BUILTIN}/{DEFAULT_MODEL}")
        elif found := next((each for each in stand_ins if each in models.aliases), None):
            aliases[name] = models.aliases[found]
    usual = {name: f"{name}/{provider.model}" for name, provider in providers.items() if provider.model}
    aliases = {
        **{name: AliasSection(model=model) for name, model in usual.items()},
        **{name: _lead_to_models(alias, usual) for name, alias in aliases.items()},
        **{
            each.model_name: AliasSection(model=each.model, fallbacks=each.fallbacks)
            for each in agents
            if each.fallbacks
        },
    }
    return models.model_copy(update={"providers": providers, "aliases": aliases})


def _lead_to_models(alias: AliasSection, usual: Mapping[str, str]) -> AliasSection:
    """Returns the alias with the usual model of each provider that it only names."""
    fallbacks = tuple(usual.get(each, each) for each in alias.fallbacks)
    return alias.model_copy(update={"model": usual.get(alias.model, alias.model), "fallbacks": fallbacks})


def _channels(channels: ChannelsSection) -> ChannelsSection:
    """Returns the channels, every account with its whole policy."""
    discord, github = channels.discord, channels.github
    on_discord = {name: _filled(each, discord, DiscordPolicySection) for name, each in discord.accounts.items()}
    on_github = {name: _filled(each, github, GitHubPolicySection) for name, each in github.accounts.items()}
    return channels.model_copy(
        update={
            "discord": discord.model_copy(update={"accounts": on_discord}),
            "github": github.model_copy(update={"accounts": on_github}),
        }
    )


def _filled(account: _Account, common: Section, conduct: type[Section]) -> _Account:
    """Returns the account with the shared keys filled in. Its set fields still tell which keys are its own."""
    own = {name: getattr(account, name) for name in type(account).model_fields if name not in conduct.model_fields}
    values = {**own, **_merge(account, common, conduct.model_fields)}
    return type(account).model_construct(account.model_fields_set, **values)


def _merge(own: Section, common: Section, names: Iterable[str]) -> dict[str, object]:
    """Returns the values of a section: its own take precedence over the shared ones, also within a group of keys."""
    values: dict[str, object] = {}
    for name in names:
        mine, theirs = getattr(own, name), getattr(common, name)
        if name not in own.model_fields_set:
            values[name] = theirs
        elif isinstance(mine, Section):
            values[name] = mine.model_copy(update=_merge(mine, theirs, type(mine).model_fields))
        else:
            values[name] = mine
    return values
