"""What holds without being written: the embedded provider, the three aliases, the agent named `denizen`. Pure."""

from __future__ import annotations

from denizen.app.settings.references import (
    BUILTIN,
    DEFAULT_AGENT,
    DEFAULT_MODEL,
    STANDARD_ALIASES,
    Outline,
)
from denizen.app.settings.schema import AgentSection, AliasSection, Config, ModelsSection, ProviderSection


def add_implied(config: Config, outline: Outline) -> Config:
    """The configuration with everything filled in that the file leaves open, so that no reader has to know the rules.

    Without a provider there is the embedded one, and all three aliases are its model. With providers, `fast` and
    `quality` follow `balanced` or each other; `balanced` itself is never guessed.
    """
    agents = config.agents or {DEFAULT_AGENT: AgentSection()}
    default = config.default_agent or (DEFAULT_AGENT if DEFAULT_AGENT in agents else next(iter(agents)))
    return config.model_copy(
        update={"models": _models(config.models, outline), "agents": agents, "default_agent": default}
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
