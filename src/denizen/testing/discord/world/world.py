"""People using what applications offer: commands, buttons, selects, autocomplete, modals.

Each call makes an interaction, and comes back once the application has acknowledged it, or after `wait_s` without that:
then `acknowledged` is False, which a person sees as "The application did not respond".
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Unpack

import anyio

from denizen.testing.discord.actions.actions import Acts
from denizen.testing.discord.actions.channels import ThreadPlan
from denizen.testing.discord.actions.drafts import AllowedMentions, Draft, MessageEdit
from denizen.testing.discord.actions.embeds import find_component
from denizen.testing.discord.payloads.interactions import resolved_payload
from denizen.testing.discord.state.access import demand, may, permissions_in
from denizen.testing.discord.state.changes import PresenceChanged
from denizen.testing.discord.state.channels import FORUMS, Channel, ThreadState
from denizen.testing.discord.state.errors import bad_field, missing_permissions, unknown
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.interactions import Command, Interaction, InteractionKind
from denizen.testing.discord.state.messages import Attachment, Message, PollDraft, Reference, Sticker
from denizen.testing.discord.state.people import PRIVILEGED, Application, Intent, User
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.state.realm import Realm, Rules
from denizen.testing.discord.world.forms import fill_modal, fill_options, find_values

WAIT_S = 3.0


class Interplay:
    """The part of the world where people meet applications."""

    def __init__(self, acts: Acts) -> None:
        self._acts = acts

    async def run_command(
        self,
        user: User,
        channel: Channel,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        application: Application | None = None,
        wait_s: float = WAIT_S,
    ) -> Interaction:
        """A slash command. `name` may go on with group and subcommand, as it is typed: `memory forget`. Options are
        given as their values; users, channels, roles and attachments as such.
        """
        command, path = self._command(user, channel, name, application)
        interaction = self._command_use(user, channel, command, path, options or {})
        return await self._wait(interaction, wait_s)

    async def run_context_command(
        self, user: User, channel: Channel, name: str, target: User | Message, *, wait_s: float = WAIT_S
    ) -> Interaction:
        """A command from the menu of a user or a message."""
        kind = 3 if isinstance(target, Message) else 2
        command = self._find_command(user, channel, name, kind, None)
        application = self._acts.realm.applications[command.application_id]
        resolved = resolved_payload(self._acts.realm, self._acts.realm.guild_of(channel), application, [target])
        data = _about(command) | {"target_id": str(target.id), "resolved": resolved}
        return await self._wait(self._begin(InteractionKind.COMMAND, application, user, channel, data), wait_s)

    def list_commands(self, user: User, channel: Channel, kind: int = 1) -> list[Command]:
        """What a client lists for this user there, by name: slash commands, or those for a user (2) or a message (3).
        A command of the guild hides the global one of the same application and name.
        """
        if not may(self._acts.realm, user, channel, P.USE_APPLICATION_COMMANDS):
            return []
        found: dict[tuple[str, int], Command] = {}
        for each in sorted(self._commands_in(channel, kind), key=lambda each: each.guild_id is None):
            if self._may_use(user, channel, each):
                found.setdefault((each.name, each.application_id), each)
        return [found[key] for key in sorted(found)]

    async def autocomplete(
        self,
        user: User,
        channel: Channel,
        name: str,
        options: Mapping[str, Any],
        focused: str,
        *,
        wait_s: float = WAIT_S,
    ) -> list[dict[str, Any]]:
        """The choices that the application offers while `focused` is typed."""
        command, path = self._command(user, channel, name, None)
        filled, _ = fill_options(command, path, options, focused=focused)
        application = self._acts.realm.applications[command.application_id]
        data = _about(command) | {"options": filled}
        interaction = self._begin(InteractionKind.AUTOCOMPLETE, application, user, channel, data)
        return (await self._wait(interaction, wait_s)).choices or []

    async def press(
        self,
        user: User,
        message: Message,
        custom_id: str,
        values: Sequence[str | User | Channel | Any] = (),
        *,
        wait_s: float = WAIT_S,
    ) -> Interaction:
        """A button, or a select with its values."""
        channel = self._acts.realm.get_channel(message.channel_id)
        demand(self._acts.realm, user, channel)
        if message.deleted or (message.seen_by is not None and message.seen_by is not user):
            raise unknown("Message")
        component = find_component(message.components, custom_id)
        if component is None or component.get("disabled"):
            raise bad_field("data.custom_id", "COMPONENT_VALIDATION_FAILED", "Component validation failed")
        application = self._acts.realm.applications.get(message.application_id or message.author.id)
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
                guild = self._acts.realm.guild_of(channel)
                data["resolved"] = resolved_payload(self._acts.realm, guild, application, things)
        interaction = self._begin(InteractionKind.COMPONENT, application, user, channel, data, message=message)
        return await self._wait(interaction, wait_s)

    async def submit_modal(
        self, user: User, opened: Interaction, values: Mapping[str, Any], *, wait_s: float = WAIT_S
    ) -> Interaction:
        """Fills in and sends the modal with which `opened` was answered. `values` go by custom id."""
        if opened.modal is None or opened.user is not user:
            raise unknown("interaction")
        data = {"custom_id": opened.modal["custom_id"], "components": fill_modal(opened.modal, values)}
        interaction = self._begin(
            InteractionKind.MODAL,
            opened.application,
            user,
            opened.channel,
            data,
            message=opened.message,
            source=opened,
        )
        return await self._wait(interaction, wait_s)

    def _command_use(
        self, user: User, channel: Channel, command: Command, path: Sequence[str], options: Mapping[str, Any]
    ) -> Interaction:
        application = self._acts.realm.applications[command.application_id]
        kept = {
            name: self._acts.messages.store_upload(value) if hasattr(value, "size_bytes") else value
            for name, value in options.items()
        }
        filled, things = fill_options(command, path, kept)
        data = _about(command)
        if filled:
            data["options"] = filled
        if things:
            guild = self._acts.realm.guild_of(channel)
            data["resolved"] = resolved_payload(self._acts.realm, guild, application, things)
        return self._begin(InteractionKind.COMMAND, application, user, channel, data)

    def _command(
        self, user: User, channel: Channel, typed: str, application: Application | None
    ) -> tuple[Command, Sequence[str]]:
        name, *path = typed.removeprefix("/").split()
        return self._find_command(user, channel, name, 1, application), path

    def _find_command(
        self, user: User, channel: Channel, name: str, kind: int, application: Application | None
    ) -> Command:
        """Guild commands come before global ones. Raises 10063 for what is not offered there."""
        demand(self._acts.realm, user, channel, P.USE_APPLICATION_COMMANDS)
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

    def _commands_in(self, channel: Channel, kind: int) -> list[Command]:
        guild = self._acts.realm.guild_of(channel)
        present = guild.members if guild else {each.id for each in channel.recipients}
        return [
            each
            for each in self._acts.realm.commands.values()
            if each.kind == kind
            and each.application_id in present
            and each.guild_id in (None, channel.guild_id)
            and _offered(each, direct=guild is None)
        ]

    def _may_use(self, user: User, channel: Channel, command: Command) -> bool:
        needed = command.fields.get("default_member_permissions")
        granted = permissions_in(self._acts.realm, channel, user)
        return channel.guild_id is None or needed is None or _enough(int(granted), int(needed))

    def _begin(
        self,
        kind: InteractionKind,
        application: Application,
        user: User,
        channel: Channel,
        data: dict[str, Any],
        **origin: Any,  # noqa: ANN401 - `message` and `source` of the record
    ) -> Interaction:
        realm = self._acts.realm
        interaction = Interaction(
            realm.ids.fresh(),
            kind,
            secrets.token_urlsafe(48),
            application,
            user,
            channel,
            data,
            realm.clock.now(),
            **origin,
        )
        return self._acts.interactions.begin(interaction)

    async def _wait(self, interaction: Interaction, wait_s: float) -> Interaction:
        with anyio.move_on_after(wait_s):
            await interaction.pulse.until(lambda: interaction.acknowledged)
        return interaction


def _about(command: Command) -> dict[str, Any]:
    data: dict[str, Any] = {"id": str(command.id), "name": command.name, "type": command.kind}
    return data if command.guild_id is None else data | {"guild_id": str(command.guild_id)}


def _offered(command: Command, *, direct: bool) -> bool:
    """In guilds (context 0) or in direct messages with the bot (1), as the command says."""
    contexts: list[int] | None = command.fields.get("contexts")
    if contexts is not None:
        return int(direct) in contexts
    return not direct or command.fields.get("dm_permission") is not False


def _enough(granted: int, needed: int) -> bool:
    """A command that needs nothing (0) is for administrators only."""
    return granted & needed == needed if needed else bool(granted & P.ADMINISTRATOR)


class Extras(TypedDict, total=False):
    """What may come with the words. `ping` False answers without mentioning; `forward` sends another message on."""

    reply_to: Message
    ping: bool
    forward: Message
    attachments: Sequence[Attachment]
    stickers: Sequence[Sticker]
    poll: PollDraft
    embeds: Sequence[dict[str, Any]]
    components: Sequence[dict[str, Any]]
    nonce: str


class World(Interplay):
    """People, guilds, applications, and what people do. The records themselves are in `realm`."""

    @property
    def realm(self) -> Realm:
        return self._acts.realm

    @property
    def rules(self) -> Rules:
        """The limits that may be moved."""
        return self.realm.rules

    @property
    def guilds(self) -> list[Guild]:
        return list(self.realm.guilds.values())

    @property
    def channels(self) -> list[Channel]:
        """Every channel there is, threads and direct messages included."""
        return list(self.realm.channels.values())

    @property
    def applications(self) -> list[Application]:
        return list(self.realm.applications.values())

    def add_person(self, name: str) -> User:
        user = User(self.realm.ids.fresh(), name.lower().replace(" ", "_"), name)
        self.realm.users[user.id] = user
        return user

    def add_guild(self, name: str, owner: User) -> Guild:
        return self._acts.guilds.add_guild(name, owner)

    def add_application(self, name: str, *, intents: Intent = PRIVILEGED, owner: User | None = None) -> Application:
        """A bot, in no guild yet. `intents` are the privileged ones that its portal page has enabled."""
        number = self.realm.ids.fresh()
        user = User(number, name, name, bot=True)
        keeper = owner or self.add_person(f"{name}'s keeper")
        token = f"{number}.{secrets.token_urlsafe(24)}"
        application = Application(number, name, token, user, keeper, intents)
        self.realm.users[number] = user
        self.realm.applications[number] = application
        return application

    def channel_of(self, message: Message) -> Channel:
        return self.realm.get_channel(message.channel_id)

    def say(self, author: User, channel: Channel, text: str = "", **extras: Unpack[Extras]) -> Message:
        """Sends a message. Raises what Discord answers, as `RefusedError`."""
        reply, forward = extras.get("reply_to"), extras.get("forward")
        reference = Reference(reply.channel_id, reply.id) if reply else None
        draft = Draft(
            content=text,
            embeds=list(extras.get("embeds", ())),
            components=list(extras.get("components", ())),
            attachments=list(extras.get("attachments", ())),
            sticker_ids=[each.id for each in extras.get("stickers", ())],
            poll=extras.get("poll"),
            reference=Reference(forward.channel_id, forward.id, kind=1) if forward else reference,
            mentions=AllowedMentions(replied_user=extras.get("ping", True)),
            nonce=extras.get("nonce"),
        )
        return self._acts.messages.send(author, channel, draft)

    def edit(self, message: Message, text: str) -> Message:
        """Its author edits it."""
        channel = self.channel_of(message)
        return self._acts.messages.edit(message.author, channel, message, MessageEdit(content=text))

    def delete(self, message: Message, by: User | None = None) -> None:
        """Its author deletes it, or somebody else who may."""
        self._acts.messages.delete(by or message.author, self.channel_of(message), message)

    def delete_many(self, user: User, messages: Sequence[Message]) -> None:
        self._acts.messages.delete_many(user, self.channel_of(messages[0]), [each.id for each in messages])

    def react(self, user: User, message: Message, emoji: str) -> None:
        """`emoji` is the emoji itself, or `name:id` of one of a guild."""
        marks = self._acts.marks
        marks.react(user, self.channel_of(message), message, marks.parse_emoji(emoji))

    def unreact(self, user: User, message: Message, emoji: str) -> None:
        marks = self._acts.marks
        marks.unreact(user, self.channel_of(message), message, marks.parse_emoji(emoji), user)

    def vote(self, user: User, message: Message, answer_id: int) -> None:
        self._acts.marks.vote(user, self.channel_of(message), message, answer_id)

    def pin(self, user: User, message: Message) -> None:
        self._acts.marks.pin(user, self.channel_of(message), message)

    def type_in(self, user: User, channel: Channel) -> None:
        """The user is seen typing."""
        self._acts.marks.type_in(user, channel)

    def open_thread(
        self, user: User, where: Channel | Message, name: str, *, private: bool = False, text: str | None = None
    ) -> Channel:
        """From a message, without one, or in a forum, where `text` is the post."""
        plan = ThreadPlan(name, private=private)
        if isinstance(where, Message):
            return self._acts.threads.from_message(user, self.channel_of(where), where, plan)
        if where.kind in FORUMS:
            return self._acts.threads.post(user, where, plan, Draft(content=text or ""))[0]
        thread = self._acts.threads.bare(user, where, plan)
        if text is not None:
            self.say(user, thread, text)
        return thread

    def archive(self, user: User, thread: Channel, *, archived: bool = True, locked: bool = False) -> None:
        def change(_: Channel, state: ThreadState) -> None:
            state.archived, state.locked = archived, locked

        self._acts.threads.modify(user, thread, change)

    def invite_to(self, user: User, thread: Channel, guest: User) -> None:
        """Adds somebody to a thread."""
        self._acts.threads.add_member(user, thread, guest)

    def open_dm(self, one: User, other: User) -> Channel:
        return self._acts.channels.open_dm(one, other)

    def set_presence(self, user: User, status: str = "online", activities: Sequence[dict[str, Any]] = ()) -> None:
        self.realm.presences[user.id] = {"status": status, "activities": list(activities)}
        self.realm.tell(PresenceChanged(user))

    def delete_channel(self, channel: Channel) -> None:
        """Unchecked: the channel is gone, with its threads."""
        self._acts.channels.remove(channel)

    def find_person(self, name: str) -> User:
        for user in self.realm.users.values():
            if name in (user.name, user.display_name):
                return user
        raise unknown("User")
