"""Actions of applications: registering commands, and answering interactions within their deadlines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from denizen.testing.discord.actions.drafts import MessageDraft, MessageEdit
from denizen.testing.discord.actions.messages import MessageActions
from denizen.testing.discord.payloads.interactions import interaction_payload, metadata_payload
from denizen.testing.discord.state.changes import InteractionAnswered, InteractionSent, MessageSent
from denizen.testing.discord.state.errors import bad, bad_field, bad_form, unauthorized_token, unknown
from denizen.testing.discord.state.interactions import (
    CallbackKind,
    InteractionKind,
    SimCommand,
    SimCommandWrite,
    SimInteraction,
)
from denizen.testing.discord.state.messages import MessageFlag, MessageKind, MessageOrigin, SimMessage, SimReference
from denizen.testing.discord.state.people import SimApplication, SimUser
from denizen.testing.discord.state.store import SimStore

_NAME = re.compile(r"[-_'\w]{1,32}")
_MAX_COMMANDS = 100
_MAX_OPTIONS = 25
_GROUPS = (1, 2)
Fault = tuple[str, str, str]


class CommandActions:
    """The commands of every application of a store."""

    def __init__(self, store: SimStore) -> None:
        self._store = store

    def list(self, application: SimApplication, guild_id: int | None) -> list[SimCommand]:
        """Returns the commands of one guild, or the global ones."""
        own = (each for each in self._store.interactions.commands.values() if each.application_id == application.id)
        return [each for each in own if each.guild_id == guild_id]

    def get(self, application: SimApplication, guild_id: int | None, command_id: int) -> SimCommand:
        for command in self.list(application, guild_id):
            if command.id == command_id:
                return command
        raise unknown("application command")

    def create(
        self, application: SimApplication, guild_id: int | None, fields: Mapping[str, Any]
    ) -> tuple[SimCommand, bool]:
        """Returns the command, and whether it is new: one of the same name and kind is overwritten."""
        check_command("", fields)
        self._note(application, guild_id, "create", [fields])
        existing = {(each.name, each.kind): each for each in self.list(application, guild_id)}
        command = existing.get((fields["name"], int(fields.get("type") or 1)))
        if command is None and len(existing) >= _MAX_COMMANDS:
            raise bad(30032, f"Maximum number of application commands reached ({_MAX_COMMANDS})")
        new = command is None
        return self._keep(application, guild_id, fields, command), new

    def edit(self, application: SimApplication, command: SimCommand, fields: Mapping[str, Any]) -> SimCommand:
        changed = command.fields | dict(fields)
        check_command("", changed)
        self._note(application, command.guild_id, "edit", [changed])
        return self._keep(application, command.guild_id, changed, command)

    def delete(self, application: SimApplication, command: SimCommand) -> None:
        self._note(application, command.guild_id, "delete", [command.fields])
        del self._store.interactions.commands[command.id]

    def overwrite(
        self, application: SimApplication, guild_id: int | None, bodies: Sequence[Mapping[str, Any]]
    ) -> list[SimCommand]:
        """Replaces all commands. Those that are not named are deleted; the others keep their ids."""
        faults = [fault for index, fields in enumerate(bodies) for fault in command_faults(f"{index}", fields)]
        keys = [(str(fields.get("name")), int(fields.get("type") or 1)) for fields in bodies]
        faults += [
            (f"{index}", "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
            for index, key in enumerate(keys)
            if key in keys[:index]
        ]
        if faults:
            raise bad_form(faults)
        if len(bodies) > _MAX_COMMANDS:
            raise bad(30032, f"Maximum number of application commands reached ({_MAX_COMMANDS})")
        self._note(application, guild_id, "overwrite", bodies)
        before = {(each.name, each.kind): each for each in self.list(application, guild_id)}
        for key, command in before.items():
            if key not in keys:
                del self._store.interactions.commands[command.id]
        return [
            self._keep(application, guild_id, fields, before.get(key)) for fields, key in zip(bodies, keys, strict=True)
        ]

    def _keep(
        self, application: SimApplication, guild_id: int | None, fields: Mapping[str, Any], command: SimCommand | None
    ) -> SimCommand:
        kept = {key: value for key, value in fields.items() if key != "id"}
        if command is None:
            number = self._store.ids.fresh()
            command = SimCommand(number, application.id, guild_id, number, kept)
        elif command.fields != kept:
            command.fields, command.version = kept, self._store.ids.fresh()
        self._store.interactions.commands[command.id] = command
        return command

    def _note(
        self, application: SimApplication, guild_id: int | None, how: str, bodies: Sequence[Mapping[str, Any]]
    ) -> None:
        names = tuple(str(each["name"]) for each in bodies)
        self._store.interactions.command_writes.append(SimCommandWrite(application.id, guild_id, how, names))


def check_command(path: str, fields: Mapping[str, Any]) -> None:
    """Checks a command. Raises 50035."""
    faults = list(command_faults(path, fields))
    if faults:
        raise bad_form(faults)


def command_faults(path: str, fields: Mapping[str, Any]) -> Iterator[Fault]:
    place = f"{path}." if path else ""
    kind = int(fields.get("type") or 1)
    name = fields.get("name")
    if not isinstance(name, str) or not name:
        yield (f"{place}name", "BASE_TYPE_REQUIRED", "This field is required")
    elif kind == 1 and (not _NAME.fullmatch(name) or name != name.lower()):
        yield (f"{place}name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    elif len(name) > 32:
        yield (f"{place}name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 32 in length.")
    description = fields.get("description")
    if kind == 1 and not 1 <= len(str(description or "")) <= 100:
        yield (f"{place}description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
    yield from _option_faults(place, fields.get("options") or [])


def _option_faults(place: str, options: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    if len(options) > _MAX_OPTIONS:
        yield (f"{place}options", "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_OPTIONS} or fewer in length.")
    optional = False
    for index, option in enumerate(options):
        here = f"{place}options.{index}"
        name = option.get("name")
        if name is not None and any(each.get("name") == name for each in options[:index]):
            told = f"Option name {name} is already used in these options"
            yield (here, "APPLICATION_COMMAND_OPTIONS_NAME_INVALID", told)
        yield from command_faults(here, {**option, "type": 1})
        if option.get("type") in _GROUPS:
            continue
        if option.get("required") and optional:
            yield (
                here,
                "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID",
                "Required options must be placed before non-required options",
            )
        optional = optional or not option.get("required")
        if len(option.get("choices") or []) > _MAX_OPTIONS:
            yield (f"{here}.choices", "BASE_TYPE_MAX_LENGTH", f"Must be {_MAX_OPTIONS} or fewer in length.")
        if option.get("autocomplete") and option.get("choices"):
            told = "Autocomplete cannot be configured for an option with choices"
            yield (f"{here}.autocomplete", "APPLICATION_COMMAND_AUTOCOMPLETE_INVALID", told)


_NEEDS_MESSAGE = frozenset({CallbackKind.DEFERRED_UPDATE, CallbackKind.UPDATE})


@dataclass(frozen=True, slots=True)
class InteractionCallback:
    """The first answer of an application. `read_draft` and `read_edit` parse its data as the kind asks for."""

    kind: CallbackKind
    data: Mapping[str, Any]
    read_draft: Callable[[], MessageDraft]
    read_edit: Callable[[], MessageEdit]
    flags: int = 0


class InteractionActions:
    """The actions on interactions of one store."""

    def __init__(self, store: SimStore, messages: MessageActions) -> None:
        self._store = store
        self._messages = messages

    def begin(self, interaction: SimInteraction) -> SimInteraction:
        """Stores an interaction and sends it to the application."""
        self._store.interactions.by_token[interaction.token] = interaction
        payload = interaction_payload(self._store, interaction)
        self._store.tell(InteractionSent(interaction.application.id, interaction.channel.guild_id, payload))
        return interaction

    def answer(self, interaction_id: int, token: str, answer: InteractionCallback) -> SimInteraction:
        """Gives the first answer. Raises 10062 when it is late, and 40060 for a second one."""
        interaction = self._store.interactions.by_token.get(token)
        if interaction is None or interaction.id != interaction_id:
            raise unknown("interaction")
        if interaction.acknowledged:
            raise bad(40060, "Interaction has already been acknowledged.")
        if self._late(interaction, self._store.rules.first_answer):
            raise unknown("interaction")
        self._check_kind(interaction, answer.kind)
        self._apply(interaction, answer)
        interaction.response.kind = answer.kind
        self._told(interaction)
        return interaction

    def find(self, application_id: int, token: str) -> SimInteraction | None:
        """Returns the interaction with this token. Raises 50027 after its fifteen minutes, and 10015 before it is
        acknowledged.
        """
        interaction = self._store.interactions.by_token.get(token)
        if interaction is None or interaction.application.id != application_id:
            return None
        if self._late(interaction, self._store.rules.token_life):
            raise unauthorized_token()
        if not interaction.acknowledged:
            raise unknown("Webhook")
        return interaction

    def follow_up(self, interaction: SimInteraction, draft: MessageDraft) -> SimMessage:
        """Sends a further message. The first one after a deferred answer replaces it."""
        waiting = interaction.response.original
        if waiting is not None and waiting.loading and not waiting.state.deleted:
            edit = MessageEdit(draft.content, draft.embeds, draft.components, files=draft.attachments)
            edit.mentions = draft.mentions
            return self.edit(interaction, waiting, edit)
        if waiting is not None and not waiting.state.deleted:
            channel = interaction.channel
            draft.reference = SimReference(channel.id, waiting.id, channel.guild_id, fail_if_not_exists=False)
        message = self._send(interaction, draft, MessageKind.DEFAULT)
        self._told(interaction)
        return message

    def message(self, interaction: SimInteraction, which: str) -> SimMessage:
        """Returns `@original`, or one of the answers by id. Raises 10008. After an update of a component's message,
        that message is the original.
        """
        if which == "@original":
            original = interaction.response.original
            if original is None and interaction.response.kind in _NEEDS_MESSAGE:
                original = interaction.message
            if original is None or original.state.deleted:
                raise unknown("Message")
            return original
        for message in interaction.response.messages:
            if str(message.id) == which and not message.state.deleted:
                return message
        raise unknown("Message")

    def edit(self, interaction: SimInteraction, message: SimMessage, edit: MessageEdit) -> SimMessage:
        loading = message.loading
        self._messages.rewrite(interaction.channel, message, edit)
        if loading:
            message.state.edited = None
        self._told(interaction)
        return message

    def delete(self, interaction: SimInteraction, message: SimMessage) -> None:
        self._messages.remove(interaction.channel, [message])
        self._told(interaction)

    def _check_kind(self, interaction: SimInteraction, kind: CallbackKind) -> None:
        match kind:
            case CallbackKind.CHOICES:
                fits = interaction.kind is InteractionKind.AUTOCOMPLETE
            case CallbackKind.MODAL:
                fits = interaction.kind not in (InteractionKind.MODAL, InteractionKind.AUTOCOMPLETE)
            case CallbackKind.UPDATE | CallbackKind.DEFERRED_UPDATE:
                fits = interaction.message is not None
            case _:
                fits = interaction.kind is not InteractionKind.AUTOCOMPLETE
        if not fits:
            raise bad_field("type", "BASE_TYPE_CHOICES", "This type cannot answer this interaction")

    def _apply(self, interaction: SimInteraction, answer: InteractionCallback) -> None:
        command = interaction.kind is InteractionKind.COMMAND
        kind = MessageKind.CHAT_INPUT_COMMAND if command else MessageKind.DEFAULT
        if command and interaction.data["type"] != 1:
            kind = MessageKind.CONTEXT_MENU_COMMAND
        match answer.kind:
            case CallbackKind.MESSAGE:
                interaction.response.original = self._send(interaction, answer.read_draft(), kind)
            case CallbackKind.DEFERRED_MESSAGE:
                interaction.response.original = self._wait(interaction, kind, answer.flags & MessageFlag.EPHEMERAL)
            case CallbackKind.UPDATE if interaction.message is not None:
                self._messages.rewrite(interaction.channel, interaction.message, answer.read_edit())
            case CallbackKind.CHOICES:
                choices = list(answer.data.get("choices") or [])
                if len(choices) > 25:
                    raise bad_field("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
                interaction.response.choices = choices
            case CallbackKind.MODAL:
                interaction.response.modal = _checked_modal(answer.data)
            case _:
                pass

    def _send(self, interaction: SimInteraction, draft: MessageDraft, kind: MessageKind) -> SimMessage:
        bot = interaction.application.user
        message = self._messages.send(bot, interaction.channel, draft, self._origin(interaction, draft.flags), kind)
        interaction.response.messages.append(message)
        return message

    def _wait(self, interaction: SimInteraction, kind: MessageKind, ephemeral: int) -> SimMessage:
        """Creates the message that shows "is thinking"."""
        channel = interaction.channel
        message = self._messages.make(interaction.application.user, channel, kind)
        message.flags, message.origin = MessageFlag.LOADING | ephemeral, self._origin(interaction, ephemeral)
        if ephemeral:
            self._store.tell(MessageSent(channel, message))
        else:
            self._messages.place(channel, message)
        interaction.response.messages.append(message)
        return message

    def _origin(self, interaction: SimInteraction, flags: int) -> MessageOrigin:
        number = interaction.application.id
        seen_by: SimUser | None = interaction.user if flags & MessageFlag.EPHEMERAL else None
        return MessageOrigin(number, number, metadata_payload(interaction), seen_by)

    def _late(self, interaction: SimInteraction, limit: timedelta | None) -> bool:
        return limit is not None and self._store.clock.now() - interaction.created_at > limit

    def _told(self, interaction: SimInteraction) -> None:
        interaction.pulse.beat()
        self._store.tell(InteractionAnswered(interaction.id))


def _checked_modal(data: Mapping[str, Any]) -> dict[str, Any]:
    for name, limit in (("custom_id", 100), ("title", 45)):
        if not 1 <= len(str(data.get(name) or "")) <= limit:
            raise bad_field(f"data.{name}", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {limit} in length.")
    if not 1 <= len(data.get("components") or []) <= 5:
        raise bad_field("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    return dict(data)
