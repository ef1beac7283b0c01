"""Choosing who answers: `/agent`, `/handover`, `/model` and `/mode`.

`/agent` chooses the agent of this conversation. Admins may choose any agent; others those that the account's
configuration offers to everybody (`switchable`). Whoever could have chosen the agent that answers now may also call the
account's own agent back.

`/handover` lets one of the same agents answer everything that is said in the room, for a while (`domain/handover`).

`/model` and `/mode` choose the model that answers the caller; nobody else's turns are affected. A model is named by an
alias or as `provider/model`. Its key and address are those of the provider, which the configuration names: no option
takes a key, since others could read it. Aliases are for everybody; any other model, and choosing for somebody else, is
for admins, who so give somebody a provider with a key or an address of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.conversation import Place
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.handover import BACK, DEFAULT_MESSAGES, DEFAULT_MINUTES, is_own_session, plan_handover
from denizen.domain.ids import AgentName
from denizen.domain.names import quote_name
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import join_names, private_reply, rank_suggestions
from denizen.engine.configuration.choices import MODE, MODEL, ModelMode, list_aliases
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

DEFAULT = "default"


async def _agent(context: CommandContext) -> CommandReply:
    name = context.option("name")
    if not name:
        return _list_agents(context)
    target = context.caller.account if name.casefold() == DEFAULT else context.generation.agent(name).name
    if target == context.agent.name:
        return private_reply(f"{target} answers here already.")
    if target not in _agent_choices(context):
        offered = [each for each in _agent_choices(context) if each != context.agent.name]
        raise NotAllowed(
            f"You may not let {target} answer here.",
            code="agent_not_switchable",
            why="Only admins may choose any agent; this one is not offered to everybody.",
            fix=f"Choose one of: {join_names(offered)}." if offered else "Ask an admin.",
        )
    await context.deps.choose_agent(context, target)
    await _end_handover(context)
    back = "" if target == context.caller.account else " Use /agent default to go back."
    return private_reply(f"From now on {target} answers here, with a history of its own.{back}")


def _list_agents(context: CommandContext) -> CommandReply:
    may = set(_agent_choices(context))
    lines = [f"{context.agent.name} answers here. Agents:"]
    for agent in context.generation.agents.values():
        about = f": {agent.description}" if agent.description else ""
        note = "" if agent.name in may else " (admins only)"
        lines.append(f"- `{agent.name}`{about}{note}")
    return private_reply(*lines)


def _agent_choices(context: CommandContext) -> list[AgentName]:
    """Returns the agents that the caller may let answer here."""
    agents, own = context.generation.agents, context.caller.account
    if context.caller.is_admin:
        return list(agents)
    open_to_all = context.caller.account_policy.switchable
    # Whoever may leave the account's own agent for an open one may also come back to it.
    back = {own} if context.agent.name in open_to_all | {own} else set[AgentName]()
    return [name for name in agents if name in open_to_all | back]


async def _suggest_agent(context: CommandContext, typed: str) -> Sequence[str]:
    return rank_suggestions(typed, [*_agent_choices(context), DEFAULT])


AGENT = CommandDefinition(
    CommandSpec(
        "agent",
        "See which agents there are, or choose who answers here.",
        (CommandOption("name", "The agent that answers from now on; `default` goes back.", suggests=True),),
    ),
    _agent,
    {"name": _suggest_agent},
)


async def _handover(context: CommandContext) -> CommandReply:
    name, place = context.option("agent"), context.command.room.place
    handovers = context.services.handovers
    account = await handovers.get_account(place, context.caller.account, context.agent.name)
    if name.casefold() == BACK:
        said = await _end_handover(context)
        return private_reply(_told_here(place, said, "Done.") if said else "This room was not handed over.")
    target = context.generation.agent(name)
    if target.name not in _agent_choices(context) or not target.enabled:
        raise NotAllowed(
            f"You may not let {target.name} answer here.",
            code="agent_not_switchable",
            why="Only admins may choose any agent; this one is off, or not offered to everybody.",
            fix="Ask an admin.",
        )
    if target.name == context.agent.name:
        return private_reply(f"{target.name} answers here already.")
    limits = {key: _read_number(context, key, usual) for key, usual in _HANDOVER_LIMITS.items()}
    if not context.caller.is_admin and any(limits[key] > usual for key, usual in _HANDOVER_LIMITS.items()):
        raise NotAllowed(
            "Only admins hand a room over for so long.",
            code="handover_long",
            why="an agent that has a room answers every message in it",
            fix=f"Leave out `minutes` and `messages`: {DEFAULT_MINUTES} minutes, {DEFAULT_MESSAGES} messages.",
        )
    handover = plan_handover(target.name, context.now(), **limits)
    said = await handovers.begin(account, place, handover, key=context.command.id)
    return private_reply(_told_here(place, said, f"{target.name} has this room now."))


async def _end_handover(context: CommandContext) -> str:
    """Takes the room back from the agent that it was handed to. Returns what is told; empty where none has it."""
    place, handovers = context.command.room.place, context.services.handovers
    account = await handovers.find_account(place, context.caller.account, context.agent.name)
    if account is None:
        return ""
    why = f"{quote_name(context.command.author_name) or 'Somebody'} has ended it"
    return await handovers.end(account, place, why, key=context.command.id)


def _told_here(place: Place, said: str, short: str) -> str:
    """Returns the reply about a hand-over, of which a room on a platform was told already."""
    return said if is_own_session(place) else short


_HANDOVER_LIMITS = {"minutes": DEFAULT_MINUTES, "messages": DEFAULT_MESSAGES}


def _read_number(context: CommandContext, key: str, usual: int) -> int:
    """Returns the number that an option gives. Raises InvalidInput."""
    text = context.option(key) or str(usual)
    if not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise InvalidInput(f"`{key}` is no number.", code="command_usage", fix=f"Write one such as {usual}.")
    return int(text)


HANDOVER = CommandDefinition(
    CommandSpec(
        "handover",
        "Let another agent answer everything in this room for a while.",
        (
            CommandOption("agent", f"Who gets the room; `{BACK}` ends it.", required=True, suggests=True),
            CommandOption("minutes", f"For how long.  [{DEFAULT_MINUTES}]"),
            CommandOption("messages", f"For how many messages.  [{DEFAULT_MESSAGES}]"),
        ),
    ),
    _handover,
    {"agent": _suggest_agent},
)


_USER_OPTION = CommandOption("user", "For somebody else (admins only): @Name or an id.")


async def _model(context: CommandContext) -> CommandReply:
    match context.command.group:
        case "set":
            return await _set_model(context)
        case "remove":
            return await _remove_model(context)
        case _:
            return await _list_models(context)


async def _set_model(context: CommandContext) -> CommandReply:
    name, models = context.option("model"), context.generation.models
    aliases = list_aliases(models)
    if name not in aliases and not context.caller.is_admin:
        raise NotAllowed(
            f"You may not choose the model '{name}'.",
            code="model_not_offered",
            why="Models without an alias are for admins.",
            fix=f"Choose one of: {join_names(aliases)}.",
        )
    model = models.get(name)
    key, whose = await _find_settings_key(context)
    async with context.store.work() as work:
        await work.user_settings.put(key, MODEL, name, now=context.now())
    about = "" if model.name == name else f" ({model.name})"
    return private_reply(
        f"`{name}`{about} answers {whose} from now on. Nobody else is affected; /model remove takes it back."
    )


async def _remove_model(context: CommandContext) -> CommandReply:
    key, whose = await _find_settings_key(context)
    async with context.store.work() as work:
        had = (await work.user_settings.get(key)).get(MODEL)
        await work.user_settings.put(key, MODEL, None, now=context.now())
    if not had:
        return private_reply(f"No model was chosen for {whose}; nothing changed.")
    return private_reply(
        f"`{had}` no longer answers {whose}. The mode decides now if one is set, else the agent's own model."
    )


async def _list_models(context: CommandContext) -> CommandReply:
    models = context.generation.models.list_models()
    lines = [await _own_choice(context), "Models:"]
    targets = {alias: model.name for model in models for alias in model.aliases}
    lines += [f"- `{alias}`: {targets[alias]}" for alias in sorted(targets)]
    if context.caller.is_admin:
        lines += [f"- `{model.name}` (admins)" for model in models if not model.aliases]
        lines += await _list_choices(context)
    return private_reply(*lines)


async def _list_choices(context: CommandContext) -> list[str]:
    """The models that users of this platform have for themselves, for admins."""
    prefix = context.user_key("")
    async with context.store.work(write=False) as work:
        chosen = await work.user_settings.list_values(MODEL)
    users = {key.removeprefix(prefix): model for key, model in chosen.items() if key.startswith(prefix)}
    return ["Users with a model of their own:", *(f"- {user}: `{users[user]}`" for user in users)] if users else []


async def _own_choice(context: CommandContext) -> str:
    async with context.store.work(write=False) as work:
        settings = await work.user_settings.get(context.caller.principal.key)
    if model := settings.get(MODEL):
        return f"You chose the model `{model}`."
    if mode := settings.get(MODE):
        return f"You chose the mode `{mode}`."
    return f"You chose none, so {context.agent.name} uses its own: `{context.agent.model_word}`."


async def _find_settings_key(context: CommandContext) -> tuple[str, str]:
    """Returns whose settings are meant, by key and in words."""
    user = context.option("user")
    if not user:
        return context.caller.principal.key, "you"
    return context.user_key(await context.find_user(user)), user


async def _suggest_model(context: CommandContext, typed: str) -> Sequence[str]:
    models = context.generation.models
    names = list_aliases(models)
    if context.caller.is_admin:
        names += [info.name for info in models.list_models()]
    return rank_suggestions(typed, names)


async def _mode(context: CommandContext) -> CommandReply:
    match context.command.group:
        case "set":
            return await _set_mode(context)
        case "clear":
            return await _clear_mode(context)
        case "status":
            return private_reply(await _own_choice(context))
        case _:
            return _list_modes(context)


async def _set_mode(context: CommandContext) -> CommandReply:
    mode, models = context.option("mode"), context.generation.models
    usable = _usable_modes(context)
    if mode not in usable:
        raise InvalidInput(
            f"The mode '{mode}' has no model here.",
            code="mode_not_configured",
            why="A mode uses the model alias of the same name.",
            fix=f"Choose one of: {join_names(usable)}." if usable else "The operator adds it under models.aliases.",
        )
    async with context.store.work() as work:
        key = context.caller.principal.key
        await work.user_settings.put(key, MODE, mode, now=context.now())
        model = (await work.user_settings.get(key)).get(MODEL)
    # A model that was chosen by name says more than a mode does.
    if model:
        return private_reply(
            f"Mode `{mode}` is kept, but your model `{model}` goes before it. Use /model remove to use the mode."
        )
    return private_reply(f"Mode `{mode}`: {models.get(mode).name} answers you from now on. Nobody else is affected.")


async def _clear_mode(context: CommandContext) -> CommandReply:
    async with context.store.work() as work:
        await work.user_settings.put(context.caller.principal.key, MODE, None, now=context.now())
    return private_reply("Your mode is cleared.", await _own_choice(context))


def _list_modes(context: CommandContext) -> CommandReply:
    usable, models = _usable_modes(context), context.generation.models
    lines = [f"- `{mode}`: {models.get(mode).name if mode in usable else 'not configured here'}" for mode in ModelMode]
    return private_reply("Modes:", *lines)


def _usable_modes(context: CommandContext) -> list[str]:
    aliases = list_aliases(context.generation.models)
    return [mode.value for mode in ModelMode if mode in aliases]


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
            CommandSpec("list", "See which models there are, and yours; for admins also those of others."),
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
                (
                    CommandOption(
                        "mode", "What matters most to you.", required=True, choices=tuple(map(str, ModelMode))
                    ),
                ),
            ),
            CommandSpec("clear", "Clear your mode."),
            CommandSpec("status", "See what you chose."),
            CommandSpec("list", "See which model each mode uses."),
        ),
    ),
    _mode,
)
