"""The application's side of an interaction: first answer, deferred ones, follow-ups, edits, with their deadlines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from denizen.testing.discord.acts.drafts import Draft, MessageEdit
from denizen.testing.discord.acts.messages import Messages, Origin
from denizen.testing.discord.payloads.interactions import interaction_payload, metadata_payload
from denizen.testing.discord.state.changes import Answered, Interacted, MessageSent
from denizen.testing.discord.state.interactions import Callback, Interaction, InteractionKind
from denizen.testing.discord.state.messages import Message, MessageFlag, MessageKind, Reference
from denizen.testing.discord.state.people import User
from denizen.testing.discord.state.realm import Realm
from denizen.testing.discord.state.refusals import bad, bad_field, unauthorized_token, unknown
from denizen.testing.discord.state.snowflakes import moment_of

_NEEDS_MESSAGE = frozenset({Callback.DEFERRED_UPDATE, Callback.UPDATE})


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """What a callback says. `read_draft` and `read_edit` make of its data what the kind asks for."""

    kind: Callback
    data: Mapping[str, Any]
    read_draft: Callable[[], Draft]
    read_edit: Callable[[], MessageEdit]
    flags: int = 0


class Interactions:
    """Interactions from the moment they are made."""

    def __init__(self, realm: Realm, messages: Messages) -> None:
        self._realm = realm
        self._messages = messages

    def begin(self, interaction: Interaction) -> Interaction:
        """Keeps it and tells the application."""
        self._realm.interactions[interaction.token] = interaction
        payload = interaction_payload(self._realm, interaction)
        self._realm.tell(Interacted(interaction.application.id, interaction.channel.guild_id, payload))
        return interaction

    def answer(self, interaction_id: int, token: str, answer: FirstAnswer) -> Interaction:
        """The first answer. Raises 10062 when it comes too late and 40060 when there was one."""
        interaction = self._realm.interactions.get(token)
        if interaction is None or interaction.id != interaction_id:
            raise unknown("interaction")
        if interaction.acknowledged:
            raise bad(40060, "Interaction has already been acknowledged.")
        if self._late(interaction, self._realm.rules.first_answer):
            raise unknown("interaction")
        self._check_kind(interaction, answer.kind)
        self._apply(interaction, answer)
        interaction.first = answer.kind
        self._told(interaction)
        return interaction

    def find(self, application_id: int, token: str) -> Interaction | None:
        """The interaction whose token this is. Raises 50027 when its quarter of an hour is over, and 10015 when it
        has not been acknowledged yet.
        """
        interaction = self._realm.interactions.get(token)
        if interaction is None or interaction.application.id != application_id:
            return None
        if self._late(interaction, self._realm.rules.token_life):
            raise unauthorized_token()
        if not interaction.acknowledged:
            raise unknown("Webhook")
        return interaction

    def follow_up(self, interaction: Interaction, draft: Draft) -> Message:
        """A further message. The first one after a deferred answer takes that one's place."""
        waiting = interaction.original
        if waiting is not None and waiting.loading and not waiting.deleted:
            edit = MessageEdit(draft.content, draft.embeds, draft.components, files=draft.attachments)
            edit.mentions = draft.mentions
            return self.edit(interaction, waiting, edit)
        if waiting is not None and not waiting.deleted:
            channel = interaction.channel
            draft.reference = Reference(channel.id, waiting.id, channel.guild_id)
            draft.fail_if_not_exists = False
        message = self._send(interaction, draft, MessageKind.DEFAULT)
        self._told(interaction)
        return message

    def message(self, interaction: Interaction, which: str) -> Message:
        """`@original`, or one of the answers by id. Raises 10008. For a component that was answered by an update the
        original is the component's message.
        """
        if which == "@original":
            original = interaction.original
            if original is None and interaction.first in _NEEDS_MESSAGE:
                original = interaction.message
            if original is None or original.deleted:
                raise unknown("Message")
            return original
        for message in interaction.answers:
            if str(message.id) == which and not message.deleted:
                return message
        raise unknown("Message")

    def edit(self, interaction: Interaction, message: Message, edit: MessageEdit) -> Message:
        loading = message.loading
        self._messages.rewrite(interaction.channel, message, edit)
        if loading:
            message.edited = None
        self._told(interaction)
        return message

    def delete(self, interaction: Interaction, message: Message) -> None:
        self._messages.remove(interaction.channel, [message])
        self._told(interaction)

    def _check_kind(self, interaction: Interaction, kind: Callback) -> None:
        match kind:
            case Callback.CHOICES:
                fits = interaction.kind is InteractionKind.AUTOCOMPLETE
            case Callback.MODAL:
                fits = interaction.kind not in (InteractionKind.MODAL, InteractionKind.AUTOCOMPLETE)
            case Callback.UPDATE | Callback.DEFERRED_UPDATE:
                fits = interaction.message is not None
            case _:
                fits = interaction.kind is not InteractionKind.AUTOCOMPLETE
        if not fits:
            raise bad_field("type", "BASE_TYPE_CHOICES", "This type cannot answer this interaction")

    def _apply(self, interaction: Interaction, answer: FirstAnswer) -> None:
        command = interaction.kind is InteractionKind.COMMAND
        kind = MessageKind.CHAT_INPUT_COMMAND if command else MessageKind.DEFAULT
        if command and interaction.data["type"] != 1:
            kind = MessageKind.CONTEXT_MENU_COMMAND
        match answer.kind:
            case Callback.MESSAGE:
                interaction.original = self._send(interaction, answer.read_draft(), kind)
            case Callback.DEFERRED_MESSAGE:
                interaction.original = self._wait(interaction, kind, answer.flags & MessageFlag.EPHEMERAL)
            case Callback.UPDATE if interaction.message is not None:
                self._messages.rewrite(interaction.channel, interaction.message, answer.read_edit())
            case Callback.CHOICES:
                choices = list(answer.data.get("choices") or [])
                if len(choices) > 25:
                    raise bad_field("data.choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
                interaction.choices = choices
            case Callback.MODAL:
                interaction.modal = _checked_modal(answer.data)
            case _:
                pass

    def _send(self, interaction: Interaction, draft: Draft, kind: MessageKind) -> Message:
        bot = interaction.application.user
        message = self._messages.send(bot, interaction.channel, draft, self._origin(interaction, kind, draft.flags))
        interaction.answers.append(message)
        return message

    def _wait(self, interaction: Interaction, kind: MessageKind, ephemeral: int) -> Message:
        """The message that says that the bot is thinking."""
        number = self._realm.ids.fresh()
        origin = self._origin(interaction, kind, ephemeral)
        channel = interaction.channel
        message = Message(
            number,
            channel.id,
            channel.guild_id,
            interaction.application.user,
            "",
            moment_of(number),
            kind,
            flags=MessageFlag.LOADING | ephemeral,
            webhook_id=origin.webhook_id,
            application_id=origin.application_id,
            interaction=origin.interaction,
            seen_by=origin.seen_by,
        )
        if ephemeral:
            self._realm.tell(MessageSent(channel, message))
        else:
            self._messages.place(channel, message)
        interaction.answers.append(message)
        return message

    def _origin(self, interaction: Interaction, kind: MessageKind, flags: int) -> Origin:
        number = interaction.application.id
        seen_by: User | None = interaction.user if flags & MessageFlag.EPHEMERAL else None
        return Origin(number, number, metadata_payload(interaction), kind, seen_by)

    def _late(self, interaction: Interaction, limit: timedelta | None) -> bool:
        return limit is not None and self._realm.clock.now() - interaction.created_at > limit

    def _told(self, interaction: Interaction) -> None:
        interaction.pulse.beat()
        self._realm.tell(Answered(interaction.id))


def _checked_modal(data: Mapping[str, Any]) -> dict[str, Any]:
    for name, limit in (("custom_id", 100), ("title", 45)):
        if not 1 <= len(str(data.get(name) or "")) <= limit:
            raise bad_field(f"data.{name}", "BASE_TYPE_BAD_LENGTH", f"Must be between 1 and {limit} in length.")
    if not 1 <= len(data.get("components") or []) <= 5:
        raise bad_field("data.components", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 5 in length.")
    return dict(data)
