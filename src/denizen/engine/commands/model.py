"""`/model` and `/mode`: which model answers oneself (inventory V16, V17). Nobody else's turns are touched (V15).

A model is named by an alias or as `provider/model`; its key and address are those of the configuration, and no option
takes a key (VW7). Aliases are for everybody; any other model, and choosing for somebody else, is for admins.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.engine.choices import MODE, MODEL, Mode, list_aliases
from denizen.engine.commands.people import find_user
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import listed, matching, say
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

_USER_OPTION = CommandOption("user", "For somebody else (admins only): @Name or an id.")


async def _model(given: Given) -> CommandReply:
    match given.command.group:
        case "set":
            return await _set_model(given)
        case "remove":
            return await _remove_model(given)
        case _:
            return await _list_models(given)


async def _set_model(given: Given) -> CommandReply:
    name, models = given.option("model"), given.generation.models
    aliases = list_aliases(models)
    if name not in aliases and not given.at.is_admin:
        raise NotAllowed(
            f"You may not choose the model '{name}'.",
            code="model_not_offered",
            why="Models without an alias are for admins.",
            fix=f"Choose one of: {listed(aliases)}.",
        )
    model = models.get(name)
    key, whose = await _find_settings_key(given)
    async with given.on.services.store.work() as work:
        await work.user_settings.put(key, MODEL, name, now=given.on.services.clock.now())
    about = "" if model.name == name else f" ({model.name})"
    return say(f"`{name}`{about} answers {whose} from now on. Nobody else is affected; /model remove takes it back.")


async def _remove_model(given: Given) -> CommandReply:
    key, whose = await _find_settings_key(given)
    async with given.on.services.store.work() as work:
        had = (await work.user_settings.get(key)).get(MODEL)
        await work.user_settings.put(key, MODEL, None, now=given.on.services.clock.now())
    if not had:
        return say(f"No model was chosen for {whose}; nothing changed.")
    return say(
        f"`{had}` is not used for {whose} any more. What holds now: the mode if one is set, else the agent's model."
    )


async def _list_models(given: Given) -> CommandReply:
    models = given.generation.models.list_models()
    lines = [await _own_choice(given), "Models:"]
    targets = {alias: model.name for model in models for alias in model.aliases}
    lines += [f"- `{alias}`: {targets[alias]}" for alias in sorted(targets)]
    if given.at.is_admin:
        lines += [f"- `{model.name}` (admins)" for model in models if not model.aliases]
    return say(*lines)


async def _own_choice(given: Given) -> str:
    settings = await _load_choices(given)
    if model := settings.get(MODEL):
        return f"You chose the model `{model}`."
    if mode := settings.get(MODE):
        return f"You chose the mode `{mode}`."
    return f"You chose none, so {given.agent.name} uses its own: `{given.agent.model_word}`."


async def _load_choices(given: Given) -> dict[str, object]:
    async with given.on.services.store.work(write=False) as work:
        return dict(await work.user_settings.get(given.at.principal.key))


async def _find_settings_key(given: Given) -> tuple[str, str]:
    """Whose settings, by key and in words."""
    user = given.option("user")
    if not user:
        return given.at.principal.key, "you"
    return given.key_of(await find_user(given, user)), user


async def _suggest_model(given: Given, typed: str) -> Sequence[str]:
    models = given.generation.models
    names = list_aliases(models)
    if given.at.is_admin:
        names += [info.name for info in models.list_models()]
    return matching(typed, names)


async def _mode(given: Given) -> CommandReply:
    match given.command.group:
        case "set":
            return await _set_mode(given)
        case "clear":
            return await _clear_mode(given)
        case "status":
            return say(await _own_choice(given))
        case _:
            return _list_modes(given)


async def _set_mode(given: Given) -> CommandReply:
    mode, models = given.option("mode"), given.generation.models
    usable = _usable_modes(given)
    if mode not in usable:
        raise InvalidInput(
            f"The mode '{mode}' has no model here.",
            code="mode_not_configured",
            why="A mode uses the model alias of the same name.",
            fix=f"Choose one of: {listed(usable)}." if usable else "The operator adds it under models.aliases.",
        )
    async with given.on.services.store.work() as work:
        key = given.at.principal.key
        await work.user_settings.put(key, MODE, mode, now=given.on.services.clock.now())
        model = (await work.user_settings.get(key)).get(MODEL)
    if model:
        return say(
            f"Mode `{mode}` is kept, but your model `{model}` goes before it. Give /model remove to use the mode."
        )
    return say(f"Mode `{mode}`: {models.get(mode).name} answers you from now on. Nobody else is affected.")


async def _clear_mode(given: Given) -> CommandReply:
    async with given.on.services.store.work() as work:
        await work.user_settings.put(given.at.principal.key, MODE, None, now=given.on.services.clock.now())
    return say("You have no mode any more.", await _own_choice(given))


def _list_modes(given: Given) -> CommandReply:
    usable, models = _usable_modes(given), given.generation.models
    lines = [f"- `{mode}`: {models.get(mode).name if mode in usable else 'not configured here'}" for mode in Mode]
    return say("Modes:", *lines)


def _usable_modes(given: Given) -> list[str]:
    aliases = list_aliases(given.generation.models)
    return [mode.value for mode in Mode if mode in aliases]


MODEL_COMMAND = Command(
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
MODE_COMMAND = Command(
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
