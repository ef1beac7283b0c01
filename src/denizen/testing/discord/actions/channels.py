"""Actions on channels, their overwrites, direct messages, and threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Unpack

from denizen.testing.discord.actions.drafts import MessageDraft
from denizen.testing.discord.actions.messages import MessageActions
from denizen.testing.discord.state.access import (
    has_permission,
    permissions_in,
    require_guild_permission,
    require_permission,
)
from denizen.testing.discord.state.changes import ChannelChanged, MessageEdited, ThreadChanged, ThreadMembersChanged
from denizen.testing.discord.state.channels import (
    FORUMS,
    ChannelKind,
    ChannelSettings,
    SimChannel,
    SimForumTag,
    SimOverwrite,
    SimThreadMember,
    SimThreadState,
    normalize_channel_name,
)
from denizen.testing.discord.state.errors import ARCHIVED, bad, bad_field, missing_permissions, unknown
from denizen.testing.discord.state.guilds import ChannelOptions, SimGuild, SimRole
from denizen.testing.discord.state.messages import (
    MessageFlag,
    MessageKind,
    MessageOrigin,
    SimMessage,
    SimMessageBody,
    SimReference,
)
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import NONE, P
from denizen.testing.discord.state.store import SimStore

_KINDS = {
    "text": ChannelKind.TEXT,
    "voice": ChannelKind.VOICE,
    "category": ChannelKind.CATEGORY,
    "announcement": ChannelKind.ANNOUNCEMENT,
    "stage": ChannelKind.STAGE,
    "forum": ChannelKind.FORUM,
    "media": ChannelKind.MEDIA,
}


class ChannelActions:
    """The actions on channels of one store."""

    def __init__(self, store: SimStore) -> None:
        self._store = store

    def add(self, guild: SimGuild, name: str, **options: Unpack[ChannelOptions]) -> SimChannel:
        """Adds a channel, unchecked. In a category it takes the category's overwrites unless it is given others."""
        category, kind = options.get("category"), _KINDS[options.get("kind", "text")]
        given = list(options.get("overwrites", ())) + _private(guild, options.get("private_to"))
        if not given and category is not None:
            given = [SimOverwrite(each.id, each.kind, each.allow, each.deny) for each in category.overwrites.values()]
        channel = SimChannel(
            self._store.ids.fresh(),
            kind,
            normalize_channel_name(kind, name),
            guild.id,
            category,
            position=len(guild.channels),
            overwrites={each.id: each for each in given},
            settings=ChannelSettings(
                topic=options.get("topic"),
                nsfw=options.get("nsfw", False),
                slowmode_s=options.get("slowmode_s", 0),
                tags=[SimForumTag(self._store.ids.fresh(), each) for each in options.get("tags", ())],
            ),
        )
        guild.channels[channel.id] = channel
        self._store.channels[channel.id] = channel
        self._store.tell(ChannelChanged(channel, "created"))
        return channel

    def create(self, actor: SimUser, guild: SimGuild, name: str, **options: Unpack[ChannelOptions]) -> SimChannel:
        granted = require_guild_permission(self._store, actor, guild, P.MANAGE_CHANNELS)
        for overwrite in options.get("overwrites", ()):
            if overwrite.allow & ~granted:
                raise missing_permissions()
        return self.add(guild, name, **options)

    def modify(self, actor: SimUser, channel: SimChannel, change: Callable[[SimChannel], None]) -> None:
        """Calls `change` if the actor may manage the channel, and reports it."""
        self._store.require_guild(channel)
        require_permission(self._store, actor, channel, P.MANAGE_CHANNELS)
        change(channel)
        self._store.tell(ChannelChanged(channel, "updated"))

    def set_overwrite(self, actor: SimUser, channel: SimChannel, overwrite: SimOverwrite) -> None:
        """Sets an overwrite. A bot allows or denies only what it may do itself."""
        guild = self._store.require_guild(channel)
        require_permission(self._store, actor, channel, P.MANAGE_ROLES)
        granted = permissions_in(self._store, channel, actor)
        if (overwrite.allow | overwrite.deny) & ~granted:
            raise missing_permissions()
        known = guild.roles if overwrite.kind == 0 else self._store.users
        if overwrite.id not in known:
            raise unknown("Overwrite")
        channel.overwrites[overwrite.id] = overwrite
        self._store.tell(ChannelChanged(channel, "updated"))

    def delete_overwrite(self, actor: SimUser, channel: SimChannel, target_id: int) -> None:
        self._store.require_guild(channel)
        require_permission(self._store, actor, channel, P.MANAGE_ROLES)
        if target_id not in channel.overwrites:
            raise unknown("Overwrite")
        del channel.overwrites[target_id]
        self._store.tell(ChannelChanged(channel, "updated"))

    def delete(self, actor: SimUser, channel: SimChannel) -> None:
        """Deletes a channel with its threads, or one thread. A direct message is only closed."""
        if channel.is_dm:
            require_permission(self._store, actor, channel)
            return
        require_permission(self._store, actor, channel, P.MANAGE_THREADS if channel.is_thread else P.MANAGE_CHANNELS)
        self.remove(channel)

    def remove(self, channel: SimChannel) -> None:
        """Deletes a channel, unchecked."""
        guild = self._store.require_guild(channel)
        for thread in [each for each in guild.threads.values() if each.parent is channel]:
            self._drop(guild, thread)
        self._drop(guild, channel)
        for each in guild.channels.values():
            each.parent = None if each.parent is channel else each.parent
        if channel.is_thread:
            self._store.tell(ThreadChanged(channel, "deleted"))
        else:
            self._store.tell(ChannelChanged(channel, "deleted"))

    def open_dm(self, one: SimUser, other: SimUser) -> SimChannel:
        """Returns the direct message channel of these two, and creates it if there is none."""
        if one is other:
            raise bad_field("recipient_id", "CANNOT_DM_SELF", "Cannot send messages to yourself")
        for channel in self._store.channels.values():
            if channel.is_dm and one in channel.recipients and other in channel.recipients:
                return channel
        dm = SimChannel(self._store.ids.fresh(), ChannelKind.DM, "", recipients=[one, other])
        self._store.channels[dm.id] = dm
        return dm

    def _drop(self, guild: SimGuild, channel: SimChannel) -> None:
        channel.deleted = True
        guild.channels.pop(channel.id, None)
        guild.threads.pop(channel.id, None)
        del self._store.channels[channel.id]


def _private(guild: SimGuild, chosen: Sequence[SimRole | SimUser] | None) -> list[SimOverwrite]:
    if chosen is None:
        return []
    allowed = [SimOverwrite(each.id, 0 if isinstance(each, SimRole) else 1, P.VIEW_CHANNEL, NONE) for each in chosen]
    return [SimOverwrite(guild.id, 0, NONE, P.VIEW_CHANNEL), *allowed]


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    """The settings of a new thread. `tags` are ids of the forum's tags."""

    name: str
    private: bool = False
    auto_archive_min: int | None = None
    slowmode_s: int = 0
    invitable: bool = True
    tags: tuple[int, ...] = ()


class ThreadActions:
    """The actions on threads of one store."""

    def __init__(self, store: SimStore, messages: MessageActions) -> None:
        self._store = store
        self._messages = messages

    def from_message(self, actor: SimUser, parent: SimChannel, message: SimMessage, plan: ThreadPlan) -> SimChannel:
        """Opens a thread with the id of its message. A second one is refused (160004)."""
        if parent.kind not in (ChannelKind.TEXT, ChannelKind.ANNOUNCEMENT):
            raise bad(50024, "Cannot execute action on this channel type")
        require_permission(self._store, actor, parent, P.CREATE_PUBLIC_THREADS, P.READ_MESSAGE_HISTORY)
        if message.flags & MessageFlag.HAS_THREAD:
            raise bad(160004, "A thread has already been created for this message")
        if message.kind not in (MessageKind.DEFAULT, MessageKind.REPLY, MessageKind.CHAT_INPUT_COMMAND):
            raise bad(50021, "Cannot execute action on a system message")
        news = parent.kind is ChannelKind.ANNOUNCEMENT
        kind = ChannelKind.ANNOUNCEMENT_THREAD if news else ChannelKind.PUBLIC_THREAD
        thread = self._open(actor, parent, plan, kind, message.id)
        message.flags |= MessageFlag.HAS_THREAD
        self._store.tell(MessageEdited(parent, message))
        reference = SimReference(parent.id, message.id, parent.guild_id)
        self._notice(thread, message.author, MessageKind.THREAD_STARTER_MESSAGE, reference)
        return thread

    def bare(self, actor: SimUser, parent: SimChannel, plan: ThreadPlan) -> SimChannel:
        """Opens a thread without a message. A public one is announced in its channel."""
        if parent.kind not in (ChannelKind.TEXT, ChannelKind.ANNOUNCEMENT):
            raise bad(50024, "Cannot execute action on this channel type")
        require_permission(
            self._store, actor, parent, P.CREATE_PRIVATE_THREADS if plan.private else P.CREATE_PUBLIC_THREADS
        )
        news = parent.kind is ChannelKind.ANNOUNCEMENT
        public = ChannelKind.ANNOUNCEMENT_THREAD if news else ChannelKind.PUBLIC_THREAD
        kind = ChannelKind.PRIVATE_THREAD if plan.private else public
        thread = self._open(actor, parent, plan, kind, self._store.ids.fresh())
        if not plan.private:
            reference = SimReference(thread.id, None, thread.guild_id)
            self._notice(parent, actor, MessageKind.THREAD_CREATED, reference, plan.name)
        return thread

    def post(
        self,
        actor: SimUser,
        forum: SimChannel,
        plan: ThreadPlan,
        draft: MessageDraft,
        origin: MessageOrigin | None = None,
    ) -> tuple[SimChannel, SimMessage]:
        """Opens a forum post: the thread and its first message have the same id. A webhook needs no rights."""
        if forum.kind not in FORUMS:
            raise bad(50024, "Cannot execute action on this channel type")
        if origin is None:
            require_permission(self._store, actor, forum, P.SEND_MESSAGES)
        known = {each.id: each for each in forum.settings.tags}
        if any(each not in known for each in plan.tags):
            raise bad_field("applied_tags", "INVALID_FORUM_TAG", "Invalid tag")
        if any(known[each].moderated for each in plan.tags) and not has_permission(
            self._store, actor, forum, P.MANAGE_THREADS
        ):
            raise missing_permissions()
        message = self._messages.build(actor, forum, draft, origin)
        thread = self._open(actor, forum, plan, ChannelKind.PUBLIC_THREAD, message.id)
        message.channel_id = thread.id
        self._messages.place(thread, message)
        return thread, message

    def join(self, user: SimUser, thread: SimChannel) -> None:
        self.add_member(user, thread, user)

    def add_member(self, actor: SimUser, thread: SimChannel, user: SimUser) -> None:
        state = self._get_thread_state(thread)
        require_permission(self._store, actor, thread)
        guild = self._store.require_guild(thread)
        if state.archived:
            raise bad(*ARCHIVED)
        if user is not actor:
            require_permission(self._store, actor, thread, P.SEND_MESSAGES_IN_THREADS)
            closed = thread.kind is ChannelKind.PRIVATE_THREAD and not state.invitable and state.owner is not actor
            if closed and not has_permission(self._store, actor, thread, P.MANAGE_THREADS):
                raise missing_permissions()
        self._store.get_member(guild, user.id)
        if thread.parent is None or not has_permission(self._store, user, thread.parent, P.VIEW_CHANNEL):
            raise missing_permissions()
        if user.id in state.members:
            return
        state.members[user.id] = SimThreadMember(user, self._store.clock.now())
        self._store.tell(ThreadMembersChanged(thread, added=[user]))

    def remove_member(self, actor: SimUser, thread: SimChannel, user: SimUser) -> None:
        state = self._get_thread_state(thread)
        require_permission(self._store, actor, thread)
        owns = thread.kind is ChannelKind.PRIVATE_THREAD and state.owner is actor
        if user is not actor and not owns:
            require_permission(self._store, actor, thread, P.MANAGE_THREADS)
        if user.id not in state.members:
            raise unknown("Member")
        del state.members[user.id]
        self._store.tell(ThreadMembersChanged(thread, removed=[user]))

    def modify(self, actor: SimUser, thread: SimChannel, change: Callable[[SimChannel, SimThreadState], None]) -> None:
        """Changes a thread, for its owner or somebody who manages threads. An archived one can only be unarchived,
        which any member who may write can do, unless it is locked.
        """
        state = self._get_thread_state(thread)
        require_permission(self._store, actor, thread)
        manages = has_permission(self._store, actor, thread, P.MANAGE_THREADS)
        wakes = (
            state.archived
            and not state.locked
            and has_permission(self._store, actor, thread, P.SEND_MESSAGES_IN_THREADS)
        )
        if not (manages or state.owner is actor or wakes):
            raise missing_permissions()
        was_archived, was_locked = state.archived, state.locked
        change(thread, state)
        if state.locked != was_locked and not manages:
            state.archived, state.locked = was_archived, was_locked
            raise missing_permissions()
        if was_archived and state.archived:
            raise bad(*ARCHIVED)
        if was_archived != state.archived:
            state.archive_at = self._store.clock.now()
        self._store.tell(ThreadChanged(thread, "updated"))

    def _open(
        self, actor: SimUser, parent: SimChannel, plan: ThreadPlan, kind: ChannelKind, thread_id: int
    ) -> SimChannel:
        guild = self._store.require_guild(parent)
        now = self._store.clock.now()
        state = SimThreadState(
            actor,
            now,
            now,
            invitable=plan.invitable,
            tags=list(plan.tags),
            auto_archive_min=plan.auto_archive_min or parent.settings.default_auto_archive_min,
        )
        state.members[actor.id] = SimThreadMember(actor, now)
        settings = ChannelSettings(slowmode_s=plan.slowmode_s)
        thread = SimChannel(thread_id, kind, plan.name, guild.id, parent, thread=state, settings=settings)
        guild.threads[thread.id] = thread
        self._store.channels[thread.id] = thread
        if parent.kind in FORUMS:
            parent.history.last_id = thread.id
        self._store.tell(ThreadChanged(thread, "created"))
        self._store.tell(ThreadMembersChanged(thread, added=[actor]))
        return thread

    def _notice(
        self, channel: SimChannel, author: SimUser, kind: MessageKind, reference: SimReference, content: str = ""
    ) -> None:
        notice = self._messages.make(author, channel, kind)
        notice.body, notice.reference = SimMessageBody(content), reference
        self._messages.place(channel, notice)

    def _get_thread_state(self, thread: SimChannel) -> SimThreadState:
        if thread.thread is None:
            raise bad(50024, "Cannot execute action on this channel type")
        return thread.thread
