"""Checks on the tree of the file: names that refer to each other across sections, and secrets in plain text. Pure.

The checks look at the tree, not at the validated models, so that their findings stand beside the other errors of the
file. A value of the wrong type is reported elsewhere and passed over here. The typed secrets (`api_key`, `key`, `token`
of an account) are checked by their own type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from denizen.adapters.models.providers import list_key_prefixes
from denizen.app.settings.explain import literal_secret
from denizen.app.settings.fields import show_value
from denizen.app.settings.interpolation import references
from denizen.app.settings.knowledge import LOCAL, NONE
from denizen.app.settings.problem import ConfigProblem, KeyPath, suggest
from denizen.app.settings.yaml_document import ConfigDocument
from denizen.domain.json import Json
from denizen.domain.record import record
from denizen.domain.routing import AUTO, USUAL

BUILTIN = "builtin"
"""The provider that exists without being configured: the embedded model."""
DEFAULT_MODEL = "default"
"""`builtin/default` is the embedded provider's own model."""
DEFAULT_AGENT = "denizen"
STANDARD_ALIASES: Mapping[str, tuple[str, ...]] = {
    "fast": ("balanced", "quality"),
    "balanced": (),
    "quality": ("balanced", "fast"),
}
"""The aliases that may always be named, each with the configured ones that replace it. Nothing replaces `balanced`: the
owner says which model that is.
"""


@record
class ReferenceOutline:
    """The names that refer to each other. Targets and models come with the path where they stand; `with_model` are the
    providers that say which model is meant where only they are named.
    """

    providers: frozenset[str]
    with_model: frozenset[str]
    targets: tuple[tuple[KeyPath, str], ...]
    overrides: tuple[tuple[KeyPath, str], ...]
    aliases: frozenset[str]
    agents: tuple[str, ...]
    models: tuple[tuple[KeyPath, str], ...]
    named_agents: tuple[tuple[KeyPath, str], ...]

    @property
    def used_providers(self) -> frozenset[str]:
        """The providers that an alias, an agent or `embeddings` names."""
        named = (*self.targets, *self.models)
        return frozenset(text.partition("/")[0] for _, text in named if "/" in text or text in self.with_model)


def draw_outline(tree: Mapping[str, Json]) -> ReferenceOutline:
    """Reads the names out of a tree of any shape."""
    models = _group(tree, "models")
    aliases, providers = _group(models, "aliases"), _group(models, "providers")
    agents = _group(tree, "agents")
    return ReferenceOutline(
        providers=frozenset(providers),
        with_model=frozenset(name for name in providers if _group(providers, name).get("model")),
        targets=(*_targets(aliases), *_embedding(tree)),
        overrides=tuple((("models", "overrides", name), name) for name in _group(models, "overrides")),
        aliases=frozenset(aliases),
        agents=tuple(agents) or (DEFAULT_AGENT,),
        models=(*_agent_models(tree), *_observer_model(tree), *_schedule_models(tree)),
        named_agents=tuple(_named_agents(tree)),
    )


def find_broken_references(
    document: ConfigDocument, tree: Mapping[str, Json], known_tools: Collection[str] | None
) -> Iterator[ConfigProblem]:
    """Yields a problem for each name that does not lead anywhere. `known_tools` None leaves the tools unchecked."""
    outline = draw_outline(tree)
    for path, text in (*outline.targets, *outline.overrides):
        yield from _check_target(document, outline, path, text)
    for path, text in outline.models:
        yield from _check_model(document, outline, path, text)
    for path, name in outline.named_agents:
        if name not in outline.agents:
            fix = suggest(show_value(name), outline.agents, noun="agents")
            yield document.problem(path, f"there is no agent '{show_value(name)}'.", fix)
    default = tree.get("default_agent")
    if isinstance(default, str) and default and default not in outline.agents:
        fix = suggest(show_value(default), outline.agents, noun="agents")
        yield document.problem(("default_agent",), f"there is no agent '{show_value(default)}'.", fix)
    elif not default and len(outline.agents) > 1 and DEFAULT_AGENT not in outline.agents:
        fix = f"Write default_agent: {outline.agents[0]}"
        yield document.problem(("agents",), "several agents, and nothing says which one is the default.", fix)
    for name in _group(tree, "tools"):
        if known_tools is not None and name not in known_tools:
            fix = suggest(name, known_tools, noun="skills")
            yield document.problem(("tools", name), f"there is no skill '{name}'.", fix)
    if AUTO in outline.aliases:
        fix = f"Give it another name: `model: {AUTO}` lets the model be chosen for each question."
        yield document.problem(("models", "aliases", AUTO), f"no alias can be named {AUTO}.", fix)
    yield from _repeated_keys(document, tree)


def find_idle_tools(document: ConfigDocument, tree: Mapping[str, Json]) -> Iterator[ConfigProblem]:
    """Yields a notice for each tool that is switched on and useless as it is configured."""
    files = _group(_group(tree, "tools"), "files")
    if files.get("enabled") is True and not files.get("allowed"):
        fix = "Write allowed: [/srv/shared], with the absolute paths of folders that agents may read and write."
        yield document.problem(("tools", "files"), "No folders are allowed, so its tools reach no file.", fix)


def _check_target(
    document: ConfigDocument, outline: ReferenceOutline, path: KeyPath, text: str
) -> Iterator[ConfigProblem]:
    provider, slash, model = text.partition("/")
    known = outline.providers | {BUILTIN}
    if text in outline.with_model:
        return
    if text in outline.providers:
        fix = f"Write {show_value(text)}/MODEL, or `model: MODEL` at the provider."
        yield document.problem(path, f"'{show_value(text)}' names a provider, but no model.", fix)
    elif not slash or not provider or not model:
        example = f"{next(iter(sorted(outline.providers)), BUILTIN)}/MODEL"
        yield document.problem(path, f"'{show_value(text)}' is not provider/model.", f"Write it like {example}.")
    elif provider not in known:
        fix = suggest(provider, known, noun="providers")
        yield document.problem(
            path,
            f"'{show_value(text)}' names a provider that is not configured.",
            f"{fix} Add one under models, providers.",
        )


def _check_model(
    document: ConfigDocument, outline: ReferenceOutline, path: KeyPath, text: str
) -> Iterator[ConfigProblem]:
    if "/" in text or (text in outline.providers and text not in outline.aliases):
        yield from _check_target(document, outline, path, text)
        return
    known = outline.aliases if outline.providers else outline.aliases | frozenset(STANDARD_ALIASES)
    stand_ins = STANDARD_ALIASES.get(text, ())
    if text in known or known.intersection(stand_ins):
        return
    if text in STANDARD_ALIASES:
        example = f"{next(iter(sorted(outline.providers)))}/MODEL"
        fix = f"Say which model it is: under models, aliases write {text}: {example}"
        yield document.problem(path, f"providers are configured, but there is no alias '{text}'.", fix)
        return
    fix = suggest(show_value(text), known, noun="aliases")
    yield document.problem(path, f"there is no alias '{show_value(text)}'.", f"{fix} Or write provider/model.")


def _repeated_keys(document: ConfigDocument, tree: Mapping[str, Json]) -> Iterator[ConfigProblem]:
    """Yields a problem for each name that two API keys share: keys are told apart by name."""
    keys = _group(tree, "server").get("api_keys")
    seen: set[str] = set()
    for index, key in enumerate(keys if isinstance(keys, list) else ()):
        name = key.get("name") if isinstance(key, Mapping) else None
        if isinstance(name, str) and name in seen:
            path = ("server", "api_keys", index, "name")
            yield document.problem(
                path, f"the name '{show_value(name)}' is there twice.", "Give each key its own name."
            )
        elif isinstance(name, str):
            seen.add(name)


def _targets(aliases: Mapping[str, Json]) -> Iterator[tuple[KeyPath, str]]:
    for name, value in aliases.items():
        path = ("models", "aliases", name)
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, Mapping):
            model, fallbacks = value.get("model"), value.get("fallbacks")
            if isinstance(model, str):
                yield (*path, "model"), model
            for index, fallback in enumerate(fallbacks if isinstance(fallbacks, list) else ()):
                if isinstance(fallback, str):
                    yield (*path, "fallbacks", index), fallback


def _embedding(tree: Mapping[str, Json]) -> Iterator[tuple[KeyPath, str]]:
    section = _group(tree, "embeddings")
    provider, model = section.get("provider"), section.get("model")
    if isinstance(provider, str) and provider not in ("", NONE, LOCAL) and isinstance(model, str) and model:
        yield ("embeddings", "provider"), f"{provider}/{model}"


def _agent_models(tree: Mapping[str, Json]) -> Iterator[tuple[KeyPath, str]]:
    agents, default = _group(tree, "agents"), _group(tree, "agent_defaults").get("model")
    if isinstance(default, str):
        yield ("agent_defaults", "model"), USUAL if default == AUTO else default
    elif not agents:
        yield ("models", "aliases"), USUAL
    for name, agent in agents.items():
        model = agent.get("model") if isinstance(agent, Mapping) else None
        if model is None and default is None:
            yield ("agents", name), USUAL
        elif isinstance(model, str):
            yield ("agents", name, "model"), USUAL if model == AUTO else model
    sections: dict[KeyPath, Mapping[str, Json]] = {("agent_defaults",): _group(tree, "agent_defaults")}
    sections |= {("agents", name): _group(agents, name) for name in agents}
    for path, section in sections.items():
        fallbacks = section.get("fallbacks")
        for index, fallback in enumerate(fallbacks if isinstance(fallbacks, list) else ()):
            if isinstance(fallback, str):
                yield (*path, "fallbacks", index), fallback


def _observer_model(tree: Mapping[str, Json]) -> Iterator[tuple[KeyPath, str]]:
    model = _group(_group(tree, "gate"), "observer").get("model")
    if isinstance(model, str) and model:
        yield ("gate", "observer", "model"), model


def _schedule_models(tree: Mapping[str, Json]) -> Iterator[tuple[KeyPath, str]]:
    for name, schedule in _group(tree, "schedules").items():
        model = schedule.get("model") if isinstance(schedule, Mapping) else None
        if isinstance(model, str) and model:
            yield ("schedules", name, "model"), model


def _named_agents(tree: Mapping[str, Json]) -> Iterator[tuple[KeyPath, str]]:
    """Yields the places where agents are named: whom they give tasks to, accounts, what they may switch to, commands,
    schedules, the task watcher, listeners, budgets, rules of the gate.
    """
    yield from _list_names(("agent_defaults",), _group(tree, "agent_defaults"), "delegates_to")
    for name, agent in _group(tree, "agents").items():
        yield from _list_names(("agents", name), agent, "delegates_to")
    discord = _group(_group(tree, "channels"), "discord")
    yield from _list_names(("channels", "discord"), discord, "switchable")
    for name, account in _group(discord, "accounts").items():
        path = ("channels", "discord", "accounts", name)
        yield path, name
        yield from _list_names(path, account, "switchable")
    for name in _group(_group(_group(tree, "channels"), "github"), "accounts"):
        yield ("channels", "github", "accounts", name), name
    watcher = _group(tree, "task_watcher").get("agent")
    if isinstance(watcher, str) and watcher:
        yield ("task_watcher", "agent"), watcher
    for section in (("commands",), ("schedules",), ("listeners",), ("webhooks", "routes")):
        group = tree if len(section) == 1 else _group(tree, section[0])
        for name, named in _group(group, section[-1]).items():
            agent = named.get("agent") if isinstance(named, Mapping) else None
            if isinstance(agent, str) and agent:
                yield (*section, name, "agent"), agent
    for name in _group(_group(tree, "budgets"), "agents"):
        yield ("budgets", "agents", name), name
    rules = _group(tree, "gate").get("rules")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        yield from _list_names(("gate", "rules", index), rule, "agents")


def _list_names(path: KeyPath, section: Json, key: str) -> Iterator[tuple[KeyPath, str]]:
    names = section.get(key) if isinstance(section, Mapping) else None
    for index, name in enumerate(names if isinstance(names, list) else ()):
        if isinstance(name, str):
            yield (*path, key, index), name


def _group(tree: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    value = tree.get(key)
    return value if isinstance(value, Mapping) else {}


_SECRET_KEY = re.compile(
    r"(?:.*[_-])?(?:api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|token|secret|password|passwd"
    r"|authorization|credentials?|cookie)|key",
    re.IGNORECASE,
)
_PASSWORD_IN_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^/@\s:]*:(?P<password>[^/@\s]+)@", re.IGNORECASE)
_PASSWORD_IN_QUERY = re.compile(
    r"[a-z][a-z0-9+.-]*://[^\s?]*\?(?:[^\s#]*&)?[\w-]*(?:password|passwd)=(?P<password>[^&#\s]+)", re.IGNORECASE
)
_PROVIDER_KEYS = "|".join(rf"{re.escape(prefix)}[\w-]{{16,}}" for prefix in list_key_prefixes())
_WELL_KNOWN = re.compile(
    rf"\b(?:{_PROVIDER_KEYS}"
    r"|gh[opsu]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,})"
)
"""The keys of well-known services, by their look."""
_TYPED = re.compile(
    r"models\.providers\.[^.]*\.api_key|server\.api_keys\.\d+\.key|channels\.discord\.accounts\.[^.]*(?:\.token)?"
    r"|server\.sign_in\.[^.]*\.client_secret|google\.(?:client_secret|refresh_token)"
    r"|channels\.github\.accounts\.[^.]*(?:\.(?:token|private_key|webhook_secret))?"
)


def find_plain_secrets(document: ConfigDocument) -> Iterator[ConfigProblem]:
    """Yields a problem for each text that stands in place of a secret, looks like one, or holds a password."""
    for path, text in _texts(document.tree, ()):
        if _TYPED.fullmatch(".".join(str(part) for part in path)):
            continue
        if _is_plain_secret(path, text) or _WELL_KNOWN.search(text):
            yield document.problem(path, *literal_secret(path))
        elif _has_plain_password(text):
            yield document.problem(path, *literal_secret(path, noun="password"))


def _is_plain_secret(path: KeyPath, text: str) -> bool:
    key = next((part for part in reversed(path) if isinstance(part, str)), "")
    if not text or path[0] == "gate" or not _SECRET_KEY.fullmatch(key):  # the gate's keys are names of arguments
        return False
    found = references(text)
    return not found or any(reference.default for reference in found)


def _has_plain_password(text: str) -> bool:
    found = (pattern.search(text) for pattern in (_PASSWORD_IN_URL, _PASSWORD_IN_QUERY))
    return any(each is not None and not references(each["password"]) for each in found)


def _texts(node: Json, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(node, str):
        yield path, node
    elif isinstance(node, Mapping):
        for key, child in node.items():
            yield from _texts(child, (*path, key))
    elif isinstance(node, list):
        for index, child in enumerate(node):
            yield from _texts(child, (*path, index))
