"""People, and everything that they do: talk, and use the commands, buttons, selects and forms of applications.

Synchronous but for interactions. Every act is checked as Discord checks it. An interaction returns once the
application has acknowledged it, or after `wait_s` without an acknowledgement: then `acknowledged` is False, which a
person sees as "The application did not respond".
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import anyio

from denizen.testing.discord.actions.actions import SimActions
from denizen.testing.discord.actions.channels import ThreadPlan
from denizen.testing.discord.actions.drafts import AllowedMentions, MessageDraft, MessageEdit
from denizen.testing.discord.actions.embeds import find_component
from denizen.testing.discord.payloads.interactions import resolved_payload
from denizen.testing.discord.state.access import has_permission, permissions_in, require_permission
from denizen.testing.discord.state.changes import PresenceChanged
from denizen.testing.discord.state.channels import FORUMS, SimChannel, SimThreadState
from denizen.testing.discord.state.errors import bad_field, missing_permissions, unknown
from denizen.testing.discord.state.guilds import SimGuild
from denizen.testing.discord.state.interactions import InteractionKind, SimCommand, SimInteraction
from denizen.testing.discord.state.messages import SimAttachment, SimMessage, SimPollDraft, SimReference, SimSticker
from denizen.testing.discord.state.people import PRIVILEGED, GatewayIntent, SimApplication, SimPresence, SimUser
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.state.store import SimLimits, SimStore
from denizen.testing.discord.world.forms import fill_modal, fill_options, find_values

WAIT_S = 3.0


class AppUser:
    """The part of the world in which people use applications."""

    def __init__(self, acts: SimActions) -> None:
        self._acts = acts

    async def run_command(
        self,
        user: SimUser,
        channel: SimChannel,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        application: SimApplication | None = None,
        wait_s: float = WAIT_S,
    ) -> SimInteraction:
        """Runs a slash command. `name` may go on with group and subcommand, as it is typed: `memory forget`. Options
        are given as values; users, channels, roles and attachments as objects.
        """
        command, path = self._command(user, channel, name, application)
        interaction = self._command_use(user, channel, command, path, options or {})
        return await self._wait(interaction, wait_s)

    async def run_context_command(
        self, user: SimUser, channel: SimChannel, name: str, target: SimUser | SimMessage, *, wait_s: float = WAIT_S
    ) -> SimInteraction:
        """Runs a command from the menu of a user or a message."""
        kind = 3 if isinstance(target, SimMessage) else 2
        command = self._find_command(user, channel, name, kind, None)
        application = self._acts.store.applications[command.application_id]
        resolved = resolved_payload(self._acts.store, self._acts.store.get_guild_for(channel), application, [target])
        data = _about(command) | {"target_id": str(target.id), "resolved": resolved}
        return await self._wait(self._begin(InteractionKind.COMMAND, application, user, channel, data), wait_s)

    def list_commands(self, user: SimUser, channel: SimChannel, kind: int = 1) -> list[SimCommand]:
        """Returns the commands that a client lists for this user there, by name: slash commands, or those for a user
        (2) or a message (3). A guild's command hides the global one of the same application and name.
        """
        if not has_permission(self._acts.store, user, channel, P.USE_APPLICATION_COMMANDS):
            return []
        found: dict[tuple[str, int], SimCommand] = {}
        for each in sorted(self._commands_in(channel, kind), key=lambda each: each.guild_id is None):
            if self._may_use(user, channel, each):
                found.setdefault((each.name, each.application_id), each)
        return [found[key] for key in sorted(found)]

    async def autocomplete(
        self,
        user: SimUser,
        channel: SimChannel,
        name: str,
        options: Mapping[str, Any],
        focused: str,
        *,
        wait_s: float = WAIT_S,
    ) -> list[dict[str, Any]]:
        """Returns the choices that the application offers while `focused` is typed."""
        command, path = self._command(user, channel, name, None)
        filled, _ = fill_options(command, path, options, focused=focused)
        application = self._acts.store.applications[command.application_id]
        data = _about(command) | {"options": filled}
        interaction = self._begin(InteractionKind.AUTOCOMPLETE, application, user, channel, data)
        return (await self._wait(interaction, wait_s)).response.choices or []

    async def press(
        self,
        user: SimUser,
        message: SimMessage,
        custom_id: str,
        values: Sequence[str | SimUser | SimChannel | Any] = (),
        *,
        wait_s: float = WAIT_S,
    ) -> SimInteraction:
        """Presses a button, or chooses the values of a select."""
        channel = self._acts.store.get_channel(message.channel_id)
        require_permission(self._acts.store, user, channel)
        if message.state.deleted or (message.origin.seen_by is not None and message.origin.seen_by is not user):
            raise unknown("Message")
        component = find_component(message.body.components, custom_id)
        if component is None or component.get("disabled"):
            raise bad_field("data.custom_id", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
        application = self._acts.store.applications.get(message.origin.application_id or message.author.id)
        if application is None:
            raise unknown("Application")
        data: dict[str, Any] = {
            "custom_id": custom_id,
            "component_type": component["type"],
            "id": component.get("id", 0),
        }
        if component["type"] != 2:
            chosen, things = find_values(component, values)
            data["values"] = chosen
            if things:
                guild = self._acts.store.get_guild_for(channel)
                data["resolved"] = resolved_payload(self._acts.store, guild, application, things)
        interaction = self._begin(InteractionKind.COMPONENT, application, user, channel, data, message=message)
        return await self._wait(interaction, wait_s)

    async def submit_modal(
        self, user: SimUser, opened: SimInteraction, values: Mapping[str, Any], *, wait_s: float = WAIT_S
    ) -> SimInteraction:
        """Fills in and sends the modal with which `opened` was answered. `values` go by custom id."""
        if opened.response.modal is None or opened.user is not user:
            raise unknown("interaction")
        data = {
            "custom_id": opened.response.modal["custom_id"],
            "components": fill_modal(opened.response.modal, values),
        }
        interaction = self._begin(
            InteractionKind.MODAL, opened.application, user, opened.channel, data, message=opened.message, source=opened
        )
        return await self._wait(interaction, wait_s)

    def _command_use(
        self, user: SimUser, channel: SimChannel, command: SimCommand, path: Sequence[str], options: Mapping[str, Any]
    ) -> SimInteraction:
        application = self._acts.store.applications[command.application_id]
        kept = {
            name: self._acts.messages.store_upload(value) if hasattr(value, "size_bytes") else value
            for name, value in options.items()
        }
        filled, things = fill_options(command, path, kept)
        data = _about(command)
        if filled:
            data["options"] = filled
        if things:
            guild = self._acts.store.get_guild_for(channel)
            data["resolved"] = resolved_payload(self._acts.store, guild, application, things)
        return self._begin(InteractionKind.COMMAND, application, user, channel, data)

    def _command(
        self, user: SimUser, channel: SimChannel, typed: str, application: SimApplication | None
    ) -> tuple[SimCommand, Sequence[str]]:
        name, *path = typed.removeprefix("/").split()
        return self._find_command(user, channel, name, 1, application), path

    def _find_command(
        self, user: SimUser, channel: SimChannel, name: str, kind: int, application: SimApplication | None
    ) -> SimCommand:
        """Finds a command; the guild's come before global ones. Raises 10063 if it is not offered there."""
        require_permission(self._acts.store, user, channel, P.USE_APPLICATION_COMMANDS)
        found = [
            each
            for each in self._commands_in(channel, kind)
            if each.name == name and (application is None or each.application_id == application.id)
        ]
        if not found:
            raise unknown("application command")
        command = min(found, key=lambda each: each.guild_id is None)
        if not self._may_use(user, channel, command):
            raise missing_permissions()
        return command

    def _commands_in(self, channel: SimChannel, kind: int) -> list[SimCommand]:
        guild = self._acts.store.get_guild_for(channel)
        present = guild.members if guild else {each.id for each in channel.recipients}
        return [
            each
            for each in self._acts.store.interactions.commands.values()
            if each.kind == kind
            and each.application_id in present
            and each.guild_id in (None, channel.guild_id)
            and _offered(each, direct=guild is None)
        ]

    def _may_use(self, user: SimUser, channel: SimChannel, command: SimCommand) -> bool:
        needed = command.fields.get("default_member_permissions")
        if channel.guild_id is None or needed is None:
            return True
        wanted = int(needed) or P.ADMINISTRATOR.value  # a command that requires 0 is for administrators only
        return permissions_in(self._acts.store, channel, user).value & wanted == wanted

    def _begin(
        self,
        kind: InteractionKind,
        application: SimApplication,
        user: SimUser,
        channel: SimChannel,
        data: dict[str, Any],
        **origin: Any,  # noqa: ANN401 - `message` and `source` of the record
    ) -> SimInteraction:
        store = self._acts.store
        interaction = SimInteraction(
            id=store.ids.fresh(),
            kind=kind,
            token=secrets.token_urlsafe(48),
            application=application,
            user=user,
            channel=channel,
            data=data,
            created_at=store.clock.now(),
            **origin,
        )
        return self._acts.interactions.begin(interaction)

    async def _wait(self, interaction: SimInteraction, wait_s: float) -> SimInteraction:
        with anyio.move_on_after(wait_s):
            await interaction.pulse.until(lambda: interaction.acknowledged)
        return interaction


def _about(command: SimCommand) -> dict[str, Any]:
    data: dict[str, Any] = {"id": str(command.id), "name": command.name, "type": command.kind}
    return data if command.guild_id is None else data | {"guild_id": str(command.guild_id)}


def _offered(command: SimCommand, *, direct: bool) -> bool:
    """Whether the command is offered in guilds (context 0), or in direct messages with the bot (1)."""
    contexts: list[int] | None = command.fields.get("contexts")
    if contexts is not None:
        return int(direct) in contexts
    return not direct or command.fields.get("dm_permission") is not False


class MessageExtras(TypedDict, total=False):
    """The optional parts of a message. `ping` False replies without mentioning; `forward` forwards another message."""

    reply_to: SimMessage
    ping: bool
    forward: SimMessage
    attachments: Sequence[SimAttachment]
    stickers: Sequence[SimSticker]
    poll: SimPollDraft
    embeds: Sequence[dict[str, Any]]
    components: Sequence[dict[str, Any]]
    nonce: str


class SimWorld(AppUser):
    """People, guilds, applications, and what people do. The records themselves are in `store`."""

    @property
    def store(self) -> SimStore:
        return self._acts.store

    @property
    def rules(self) -> SimLimits:
        """The limits that a test may change."""
        return self.store.rules

    @property
    def guilds(self) -> list[SimGuild]:
        return list(self.store.guilds.values())

    @property
    def channels(self) -> list[SimChannel]:
        """Every channel, including threads and direct messages."""
        return list(self.store.channels.values())

    @property
    def applications(self) -> list[SimApplication]:
        return list(self.store.applications.values())

    def add_person(self, name: str) -> SimUser:
        user = SimUser(self.store.ids.fresh(), name.lower().replace(" ", "_"), name)
        self.store.users[user.id] = user
        return user

    def add_guild(self, name: str, owner: SimUser) -> SimGuild:
        return self._acts.guilds.add_guild(name, owner)

    def add_application(
        self, name: str, *, intents: GatewayIntent = PRIVILEGED, owner: SimUser | None = None
    ) -> SimApplication:
        """Adds a bot, which is in no guild yet. `intents` are the privileged ones enabled in its portal."""
        number = self.store.ids.fresh()
        user = SimUser(number, name, name, bot=True)
        keeper = owner or self.add_person(f"{name}'s keeper")
        token = f"{number}.{secrets.token_urlsafe(24)}"
        application = SimApplication(id=number, name=name, token=token, user=user, owner=keeper, intents=intents)
        self.store.users[number] = user
        self.store.applications[number] = application
        return application

    def get_channel_for(self, message: SimMessage) -> SimChannel:
        return self.store.get_channel(message.channel_id)

    def say(self, author: SimUser, channel: SimChannel, text: str = "", **extras: Unpack[MessageExtras]) -> SimMessage:
        """Sends a message. Raises Discord's errors as `RefusedError`."""
        reply, forward = extras.get("reply_to"), extras.get("forward")
        reference = SimReference(reply.channel_id, reply.id) if reply else None
        draft = MessageDraft(
            content=text,
            embeds=list(extras.get("embeds", ())),
            components=list(extras.get("components", ())),
            attachments=list(extras.get("attachments", ())),
            sticker_ids=[each.id for each in extras.get("stickers", ())],
            poll=extras.get("poll"),
            reference=SimReference(forward.channel_id, forward.id, kind=1) if forward else reference,
            mentions=AllowedMentions(replied_user=extras.get("ping", True)),
            nonce=extras.get("nonce"),
        )
        return self._acts.messages.send(author, channel, draft)

    def edit(self, message: SimMessage, text: str) -> SimMessage:
        """Edits a message, as its author."""
        channel = self.get_channel_for(message)
        return self._acts.messages.edit(message.author, channel, message, MessageEdit(content=text))

    def delete(self, message: SimMessage, by: SimUser | None = None) -> None:
        """Deletes a message, as its author or as somebody who may."""
        self._acts.messages.delete(by or message.author, self.get_channel_for(message), message)

    def delete_many(self, user: SimUser, messages: Sequence[SimMessage]) -> None:
        self._acts.messages.delete_many(user, self.get_channel_for(messages[0]), [each.id for each in messages])

    def react(self, user: SimUser, message: SimMessage, emoji: str) -> None:
        """Adds a reaction. `emoji` is the emoji itself, or `name:id` of one of a guild."""
        marks = self._acts.marks
        marks.react(user, self.get_channel_for(message), message, marks.parse_emoji(emoji))

    def unreact(self, user: SimUser, message: SimMessage, emoji: str) -> None:
        marks = self._acts.marks
        marks.unreact(user, self.get_channel_for(message), message, marks.parse_emoji(emoji), user)

    def vote(self, user: SimUser, message: SimMessage, answer_id: int) -> None:
        self._acts.marks.vote(user, self.get_channel_for(message), message, answer_id)

    def pin(self, user: SimUser, message: SimMessage) -> None:
        self._acts.marks.pin(user, self.get_channel_for(message), message)

    def type_in(self, user: SimUser, channel: SimChannel) -> None:
        """Shows the user as typing."""
        self._acts.marks.type_in(user, channel)

    def open_thread(
        self,
        user: SimUser,
        where: SimChannel | SimMessage,
        name: str,
        *,
        private: bool = False,
        text: str | None = None,
    ) -> SimChannel:
        """Opens a thread from a message, without one, or in a forum, where `text` is the post."""
        plan = ThreadPlan(name, private=private)
        if isinstance(where, SimMessage):
            return self._acts.threads.from_message(user, self.get_channel_for(where), where, plan)
        if where.kind in FORUMS:
            return self._acts.threads.post(user, where, plan, MessageDraft(content=text or ""))[0]
        thread = self._acts.threads.bare(user, where, plan)
        if text is not None:
            self.say(user, thread, text)
        return thread

    def archive(self, user: SimUser, thread: SimChannel, *, archived: bool = True, locked: bool = False) -> None:
        def change(_: SimChannel, state: SimThreadState) -> None:
            state.archived, state.locked = archived, locked

        self._acts.threads.modify(user, thread, change)

    def invite_to(self, user: SimUser, thread: SimChannel, guest: SimUser) -> None:
        """Adds somebody to a thread."""
        self._acts.threads.add_member(user, thread, guest)

    def open_dm(self, one: SimUser, other: SimUser) -> SimChannel:
        return self._acts.channels.open_dm(one, other)

    def join_voice(self, user: SimUser, channel: SimChannel) -> None:
        """Puts a person into a voice channel, unchecked."""
        self._acts.guilds.set_voice(self.store.require_guild(channel), user, channel)

    def leave_voice(self, user: SimUser, guild: SimGuild) -> None:
        self._acts.guilds.set_voice(guild, user, None)

    def set_presence(self, user: SimUser, status: str = "online", activities: Sequence[dict[str, Any]] = ()) -> None:
        user.presence = SimPresence(status, list(activities))
        self.store.tell(PresenceChanged(user))

    def delete_channel(self, channel: SimChannel) -> None:
        """Deletes the channel with its threads, unchecked."""
        self._acts.channels.remove(channel)

    def find_person(self, name: str) -> SimUser:
        for user in self.store.users.values():
            if name in (user.name, user.display_name):
                return user
        raise unknown("User")
