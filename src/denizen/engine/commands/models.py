"""`/agent`: which agents there are, and who answers in this conversation.

Admins may choose any agent; others those that the account's configuration offers to everybody (`switchable`). The
account's own agent may be called back by whoever could have chosen the one that answers now.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.ids import AgentName
from denizen.engine.choices import MODE, MODEL, Mode, list_aliases, put_agent
from denizen.engine.commands.command import CommandContext, CommandDefinition, find_user
from denizen.engine.commands.text import join_names, private_reply, rank_suggestions
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

DEFAULT = "default"


async def _agent(given: CommandContext) -> CommandReply:
    name = given.option("name")
    if not name:
        return _list_agents(given)
    target = given.at.account if name.casefold() == DEFAULT else given.generation.agent(name).name
    if target == given.agent.name:
        return private_reply(f"{target} answers here already.")
    if target not in _agent_choices(given):
        offered = [each for each in _agent_choices(given) if each != given.agent.name]
        raise NotAllowed(
            f"You may not let {target} answer here.",
            code="agent_not_switchable",
            why="Only admins may choose any agent; this one is not offered to everybody.",
            fix=f"Choose one of: {join_names(offered)}." if offered else "Ask an admin.",
        )
    async with given.on.services.store.work() as work:
        await put_agent(work, given.at.account, given.here, target, now=given.on.services.clock.now())
    back = "" if target == given.at.account else " Give /agent default to go back."
    return private_reply(f"From now on {target} answers here, with a history of its own.{back}")


def _list_agents(given: CommandContext) -> CommandReply:
    may = set(_agent_choices(given))
    lines = [f"{given.agent.name} answers here. Agents:"]
    for agent in given.generation.agents.values():
        about = f": {agent.description}" if agent.description else ""
        note = "" if agent.name in may else " (admins only)"
        lines.append(f"- `{agent.name}`{about}{note}")
    return private_reply(*lines)


def _agent_choices(given: CommandContext) -> list[AgentName]:
    """Whom this person may let answer here."""
    agents, own = given.generation.agents, given.at.account
    if given.at.is_admin:
        return list(agents)
    open_to_all = given.at.account_policy.switchable
    back = {own} if given.agent.name in open_to_all | {own} else set[AgentName]()
    return [name for name in agents if name in open_to_all | back]


async def _suggest_agent(given: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, [*_agent_choices(given), DEFAULT])


AGENT = CommandDefinition(
    CommandSpec(
        "agent",
        "See which agents there are, or choose who answers here.",
        (CommandOption("name", "The agent that answers from now on; `default` goes back.", suggests=True),),
    ),
    _agent,
    {"name": _suggest_agent},
)


_USER_OPTION = CommandOption("user", "For somebody else (admins only): @Name or an id.")


async def _model(given: CommandContext) -> CommandReply:
    match given.command.group:
        case "set":
            return await _set_model(given)
        case "remove":
            return await _remove_model(given)
        case _:
            return await _list_models(given)


async def _set_model(given: CommandContext) -> CommandReply:
    name, models = given.option("model"), given.generation.models
    aliases = list_aliases(models)
    if name not in aliases and not given.at.is_admin:
        raise NotAllowed(
            f"You may not choose the model '{name}'.",
            code="model_not_offered",
            why="Models without an alias are for admins.",
            fix=f"Choose one of: {join_names(aliases)}.",
        )
    model = models.get(name)
    key, whose = await _find_settings_key(given)
    async with given.on.services.store.work() as work:
        await work.user_settings.put(key, MODEL, name, now=given.on.services.clock.now())
    about = "" if model.name == name else f" ({model.name})"
    return private_reply(
        f"`{name}`{about} answers {whose} from now on. Nobody else is affected; /model remove takes it back."
    )


async def _remove_model(given: CommandContext) -> CommandReply:
    key, whose = await _find_settings_key(given)
    async with given.on.services.store.work() as work:
        had = (await work.user_settings.get(key)).get(MODEL)
        await work.user_settings.put(key, MODEL, None, now=given.on.services.clock.now())
    if not had:
        return private_reply(f"No model was chosen for {whose}; nothing changed.")
    return private_reply(
        f"`{had}` is not used for {whose} any more. What holds now: the mode if one is set, else the agent's model."
    )


async def _list_models(given: CommandContext) -> CommandReply:
    models = given.generation.models.list_models()
    lines = [await _own_choice(given), "Models:"]
    targets = {alias: model.name for model in models for alias in model.aliases}
    lines += [f"- `{alias}`: {targets[alias]}" for alias in sorted(targets)]
    if given.at.is_admin:
        lines += [f"- `{model.name}` (admins)" for model in models if not model.aliases]
    return private_reply(*lines)


async def _own_choice(given: CommandContext) -> str:
    settings = await _load_choices(given)
    if model := settings.get(MODEL):
        return f"You chose the model `{model}`."
    if mode := settings.get(MODE):
        return f"You chose the mode `{mode}`."
    return f"You chose none, so {given.agent.name} uses its own: `{given.agent.model_word}`."


async def _load_choices(given: CommandContext) -> dict[str, object]:
    async with given.on.services.store.work(write=False) as work:
        return dict(await work.user_settings.get(given.at.principal.key))


async def _find_settings_key(given: CommandContext) -> tuple[str, str]:
    """Whose settings, by key and in words."""
    user = given.option("user")
    if not user:
        return given.at.principal.key, "you"
    return given.key_of(await find_user(given, user)), user


async def _suggest_model(given: CommandContext, typed: str) -> Sequence[str]:
    models = given.generation.models
    names = list_aliases(models)
    if given.at.is_admin:
        names += [info.name for info in models.list_models()]
    return rank_suggestions(typed, names)


async def _mode(given: CommandContext) -> CommandReply:
    match given.command.group:
        case "set":
            return await _set_mode(given)
        case "clear":
            return await _clear_mode(given)
        case "status":
            return private_reply(await _own_choice(given))
        case _:
            return _list_modes(given)


async def _set_mode(given: CommandContext) -> CommandReply:
    mode, models = given.option("mode"), given.generation.models
    usable = _usable_modes(given)
    if mode not in usable:
        raise InvalidInput(
            f"The mode '{mode}' has no model here.",
            code="mode_not_configured",
            why="A mode uses the model alias of the same name.",
            fix=f"Choose one of: {join_names(usable)}." if usable else "The operator adds it under models.aliases.",
        )
    async with given.on.services.store.work() as work:
        key = given.at.principal.key
        await work.user_settings.put(key, MODE, mode, now=given.on.services.clock.now())
        model = (await work.user_settings.get(key)).get(MODEL)
    if model:
        return private_reply(
            f"Mode `{mode}` is kept, but your model `{model}` goes before it. Give /model remove to use the mode."
        )
    return private_reply(f"Mode `{mode}`: {models.get(mode).name} answers you from now on. Nobody else is affected.")


async def _clear_mode(given: CommandContext) -> CommandReply:
    async with given.on.services.store.work() as work:
        await work.user_settings.put(given.at.principal.key, MODE, None, now=given.on.services.clock.now())
    return private_reply("You have no mode any more.", await _own_choice(given))


def _list_modes(given: CommandContext) -> CommandReply:
    usable, models = _usable_modes(given), given.generation.models
    lines = [f"- `{mode}`: {models.get(mode).name if mode in usable else 'not configured here'}" for mode in Mode]
    return private_reply("Modes:", *lines)


def _usable_modes(given: CommandContext) -> list[str]:
    aliases = list_aliases(given.generation.models)
    return [mode.value for mode in Mode if mode in aliases]


MODEL_COMMAND = CommandDefinition(
    CommandSpec(
        "model",
        "Choose the model that answers you.",
        groups=(
            CommandSpec(
                "set",
                "Choose a model.",
                (
                    CommandOption("model", "An alias; for admins also provider/model.", required=True, suggests=True),
                    _USER_OPTION,
                ),
            ),
            CommandSpec("remove", "Go back to the agent's own model.", (_USER_OPTION,)),
            CommandSpec("list", "See which models there are, and yours."),
        ),
    ),
    _model,
    {"model": _suggest_model},
)
MODE_COMMAND = CommandDefinition(
    CommandSpec(
        "mode",
        "Choose between fast, cheap, balanced and quality answers.",
        groups=(
            CommandSpec(
                "set",
                "Choose a mode.",
                (CommandOption("mode", "What matters most to you.", required=True, choices=tuple(map(str, Mode))),),
            ),
            CommandSpec("clear", "Have no mode any more."),
            CommandSpec("status", "See what you chose."),
            CommandSpec("list", "See which model each mode uses."),
        ),
    ),
    _mode,
)
