"""The world from a person's side: who there is, what people say and do. Synchronous; every act is checked as Discord
checks it, and told to the bots that may know of it.

    ana = world.add_person("Ana")
    guild = world.add_guild("Harbour", owner=ana)
    ada = world.add_application("Ada")
    guild.join(ada.user)
    question = world.say(ana, guild.add_channel("general"), f"{ada.mention} hello")
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack

from denizen.testing.discord.acts.drafts import AllowedMentions, Draft, MessageEdit
from denizen.testing.discord.acts.threads import ThreadPlan
from denizen.testing.discord.interplay import Interplay
from denizen.testing.discord.state.changes import PresenceChanged
from denizen.testing.discord.state.channels import FORUMS, Channel, ThreadState
from denizen.testing.discord.state.guilds import Guild
from denizen.testing.discord.state.intents import PRIVILEGED, Intent
from denizen.testing.discord.state.messages import Attachment, Message, PollDraft, Reference, Sticker
from denizen.testing.discord.state.people import Application, User
from denizen.testing.discord.state.realm import Realm, Rules
from denizen.testing.discord.state.refusals import unknown


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
