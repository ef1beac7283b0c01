"""What holds without being written: the embedded provider, the three aliases, the agent named `denizen`, the values
of a preset, and what an account on a platform shares with the others. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from denizen.app.settings.fields import Section
from denizen.app.settings.presets import apply_preset
from denizen.app.settings.references import BUILTIN, DEFAULT_AGENT, DEFAULT_MODEL, STANDARD_ALIASES, Outline
from denizen.app.settings.schema import AgentSection, ChannelsSection, Config
from denizen.app.settings.schema_discord import ConductSection
from denizen.app.settings.schema_github import GitHubConductSection
from denizen.app.settings.schema_models import AliasSection, ModelsSection, ProviderSection

_Account = TypeVar("_Account", bound=Section)


def add_implied(config: Config, outline: Outline) -> Config:
    """The configuration with everything filled in that the file leaves open, so that no reader has to know the rules.

    Without a provider there is the embedded one, and all three aliases are its model. With providers, `fast` and
    `quality` follow `balanced` or each other; `balanced` itself is never guessed.
    """
    written = config.agents or {DEFAULT_AGENT: AgentSection()}
    agents = {name: apply_preset(section) for name, section in written.items()}
    default = config.default_agent or (DEFAULT_AGENT if DEFAULT_AGENT in agents else next(iter(agents)))
    return config.model_copy(
        update={
            "models": _models(config.models, outline),
            "agents": agents,
            "default_agent": default,
            "channels": _channels(config.channels),
        }
    )


def _models(models: ModelsSection, outline: Outline) -> ModelsSection:
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
    return models.model_copy(update={"providers": providers, "aliases": aliases})


def _channels(channels: ChannelsSection) -> ChannelsSection:
    """Every account with the whole of its conduct."""
    discord, github = channels.discord, channels.github
    on_discord = {name: _filled(each, discord, ConductSection) for name, each in discord.accounts.items()}
    on_github = {name: _filled(each, github, GitHubConductSection) for name, each in github.accounts.items()}
    return channels.model_copy(
        update={
            "discord": discord.model_copy(update={"accounts": on_discord}),
            "github": github.model_copy(update={"accounts": on_github}),
        }
    )


def _filled(account: _Account, common: Section, conduct: type[Section]) -> _Account:
    """Still telling by its set fields what is its own."""
    own = {name: getattr(account, name) for name in type(account).model_fields if name not in conduct.model_fields}
    values = {**own, **_merge(account, common, conduct.model_fields)}
    return type(account).model_construct(account.model_fields_set, **values)


def _merge(own: Section, common: Section, names: Iterable[str]) -> dict[str, object]:
    """What stands in a section of one's own counts before what is common to all, also within a group of keys."""
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
