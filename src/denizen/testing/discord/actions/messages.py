"""Sending, editing and deleting messages, with all of Discord's checks, and the nonce that makes a send repeatable."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from denizen.testing.discord.actions.drafts import MessageDraft, MessageEdit, find_mentions
from denizen.testing.discord.actions.embeds import store_components, store_embeds, too_long, used_files
from denizen.testing.discord.state.access import can_see, has_permission, require_permission
from denizen.testing.discord.state.changes import (
    MessageEdited,
    MessagesDeleted,
    MessageSent,
    ThreadChanged,
    ThreadMembersChanged,
)
from denizen.testing.discord.state.channels import WRITABLE, ChannelKind, SimChannel, SimThreadMember
from denizen.testing.discord.state.clock import snowflake_time
from denizen.testing.discord.state.errors import (
    ARCHIVED,
    EMPTY_MESSAGE,
    bad,
    bad_field,
    bad_form,
    forbidden,
    missing_permissions,
    too_large,
    unknown,
)
from denizen.testing.discord.state.messages import (
    MessageFlag,
    MessageKind,
    MessageOrigin,
    SimAttachment,
    SimEdit,
    SimMessage,
    SimMessageBody,
    SimPoll,
    SimReference,
    SimSnapshot,
    SimSticker,
)
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.state.store import SimStore

_MAX_FILES = 10
_TEXT_TYPES = ("text/", "application/json")
_DELETABLE = frozenset(
    {
        MessageKind.DEFAULT,
        MessageKind.CHANNEL_PINNED_MESSAGE,
        MessageKind.USER_JOIN,
        MessageKind.THREAD_CREATED,
        MessageKind.REPLY,
        MessageKind.CHAT_INPUT_COMMAND,
        MessageKind.CONTEXT_MENU_COMMAND,
        MessageKind.POLL_RESULT,
    }
)


class MessageActions:
    """The actions on messages of one store."""

    def __init__(self, store: SimStore) -> None:
        self._store = store

    def send(
        self,
        author: SimUser,
        channel: SimChannel,
        draft: MessageDraft,
        origin: MessageOrigin | None = None,
        kind: MessageKind = MessageKind.DEFAULT,
    ) -> SimMessage:
        """Sends a message; with `enforce_nonce` returns the author's earlier one with that nonce. A webhook needs no
        rights of its author.
        """
        if origin is None:
            self._check_rights(author, channel, draft)
        elif channel.kind not in WRITABLE:
            raise bad(50008, "Cannot send messages in a non-text channel")
        if draft.enforce_nonce and (earlier := self._same_nonce(author, channel, draft.nonce)):
            return earlier
        message = self.build(author, channel, draft, origin, kind)
        self.place(channel, message)
        return message

    def build(
        self,
        author: SimUser,
        channel: SimChannel,
        draft: MessageDraft,
        origin: MessageOrigin | None = None,
        kind: MessageKind = MessageKind.DEFAULT,
    ) -> SimMessage:
        """Returns the checked message, which is in no channel yet."""
        store = self._store
        draft.content = draft.content.strip()
        if draft.empty:
            raise bad(*EMPTY_MESSAGE)
        self._check_size(draft)
        message = self.make(author, channel, kind)
        message.origin = replace(origin or MessageOrigin(), nonce=draft.nonce)
        ephemeral = bool(draft.flags & MessageFlag.EPHEMERAL)
        files = [self.store_file(each, ephemeral=ephemeral) for each in draft.attachments]
        shown = used_files(draft.embeds)
        urls = {each.filename: store.files.url(channel.id, each) for each in files}
        message.reference, snapshots = self._resolve(author, channel, draft)
        if message.reference and message.reference.kind == 0 and kind is MessageKind.DEFAULT:
            message.kind = MessageKind.REPLY
        message.flags = draft.flags | (MessageFlag.HAS_SNAPSHOT if snapshots else 0)
        message.body = SimMessageBody(
            content=draft.content,
            embeds=store_embeds(draft.embeds, urls),
            components=store_components(draft.components, v2=bool(draft.flags & MessageFlag.IS_COMPONENTS_V2)),
            attachments=[each for each in files if each.filename not in shown],
            stickers=[self._sticker(channel, each) for each in draft.sticker_ids],
            snapshots=snapshots,
            poll=self._poll(draft),
            tts=draft.tts,
        )
        message.mentioned = find_mentions(store, channel, message, draft.mentions)
        return message

    def make(self, author: SimUser, channel: SimChannel, kind: MessageKind) -> SimMessage:
        """Makes an empty message with a fresh id, unchecked."""
        number = self._store.ids.fresh()
        return SimMessage(number, channel.id, channel.guild_id, author, timestamp=snowflake_time(number), kind=kind)

    def place(self, channel: SimChannel, message: SimMessage) -> None:
        """Puts a built message into its channel and reports it. An ephemeral one is reported only."""
        if message.ephemeral:
            self._store.tell(MessageSent(channel, message))
            return
        self._enter_thread(channel, message)
        channel.history.append(message)
        if message.origin.nonce is not None:
            channel.history.nonces[message.author.id, str(message.origin.nonce)] = message
        self._store.tell(MessageSent(channel, message))

    def edit(self, editor: SimUser, channel: SimChannel, message: SimMessage, edit: MessageEdit) -> SimMessage:
        """Edits an own message; of others only the flag that hides embeds, with the right to manage messages."""
        require_permission(self._store, editor, channel)
        self.check_open(channel)
        if message.author is not editor:
            if not edit.only_flags:
                raise forbidden(50005, "Cannot edit a message authored by another user")
            require_permission(self._store, editor, channel, P.MANAGE_MESSAGES)
        return self.rewrite(channel, message, edit)

    def rewrite(self, channel: SimChannel, message: SimMessage, edit: MessageEdit) -> SimMessage:
        """Edits a message, unchecked. Webhooks and interactions come here directly."""
        content = message.content if edit.content is None else edit.content.strip()
        if len(content) > self._store.rules.content_length:
            raise bad_form([too_long("content", self._store.rules.content_length)])
        kept = [each for each in message.body.attachments if edit.keep is None or each.id in edit.keep]
        added = [self.store_file(each, ephemeral=message.ephemeral) for each in edit.files]
        urls = {each.filename: self._store.files.url(channel.id, each) for each in (*kept, *added)}
        flags = message.flags
        if edit.flags is not None:  # only a few flags can be edited
            editable = MessageFlag.SUPPRESS_EMBEDS | MessageFlag.IS_COMPONENTS_V2
            flags = (flags & ~MessageFlag.SUPPRESS_EMBEDS) | (edit.flags & editable)
        v2 = bool(flags & MessageFlag.IS_COMPONENTS_V2)
        embeds = message.body.embeds if edit.embeds is None else store_embeds(edit.embeds, urls)
        components = message.body.components if edit.components is None else store_components(edit.components, v2=v2)
        shown = used_files(edit.embeds or [])
        files = kept + [each for each in added if each.filename not in shown]
        body = replace(message.body, content=content, embeds=embeds, components=components, attachments=files)
        if body.is_empty:
            raise bad(*EMPTY_MESSAGE)
        now = self._store.clock.now()
        message.state.edits.append(SimEdit(message.body, now))
        message.body, message.flags = body, flags & ~MessageFlag.LOADING
        if not edit.only_flags:
            message.state.edited = now
        if edit.content is not None:
            message.mentioned = find_mentions(self._store, channel, message, edit.mentions)
        self._store.tell(MessageEdited(channel, message))
        return message

    def crosspost(self, user: SimUser, channel: SimChannel, message: SimMessage) -> None:
        """Publishes a message once to the channels that follow this one, for its author or somebody who manages
        messages.
        """
        require_permission(self._store, user, channel, P.SEND_MESSAGES if message.author is user else P.MANAGE_MESSAGES)
        if channel.kind is not ChannelKind.ANNOUNCEMENT:
            raise bad(50024, "Cannot execute action on this channel type")
        if message.flags & MessageFlag.CROSSPOSTED:
            raise bad(40033, "This message has already been crossposted.")
        message.flags |= MessageFlag.CROSSPOSTED
        self._store.tell(MessageEdited(channel, message))

    def delete(self, user: SimUser, channel: SimChannel, message: SimMessage) -> None:
        require_permission(self._store, user, channel)
        self.check_open(channel)
        if message.author is not user:
            if channel.is_dm:
                raise forbidden(50003, "Cannot execute action on a DM channel")
            require_permission(self._store, user, channel, P.MANAGE_MESSAGES)
        if message.kind not in _DELETABLE:
            raise forbidden(50021, "Cannot execute action on a system message")
        self.remove(channel, [message])

    def delete_many(self, user: SimUser, channel: SimChannel, ids: Sequence[int]) -> None:
        """Deletes 2 to 100 messages, none older than two weeks. Missing ones are skipped."""
        if channel.is_dm:
            raise forbidden(50003, "Cannot execute action on a DM channel")
        require_permission(self._store, user, channel, P.MANAGE_MESSAGES)
        self.check_open(channel)
        if not 2 <= len(set(ids)) <= 100:
            raise bad(
                50016,
                "Provided too few or too many messages to delete. "
                "Must provide at least 2 and fewer than 100 messages to delete",
            )
        oldest = self._store.clock.now() - self._store.rules.bulk_delete_age
        if any(snowflake_time(each) < oldest for each in ids):
            raise bad(50034, "You can only bulk delete messages that are under 14 days old.")
        found = [message for each in dict.fromkeys(ids) if (message := channel.find(each))]
        if found:
            self.remove(channel, found, bulk=True)

    def remove(self, channel: SimChannel, messages: Sequence[SimMessage], *, bulk: bool = False) -> None:
        """Deletes messages, unchecked."""
        for message in messages:
            message.state.deleted = True
            if not message.ephemeral:
                channel.history.remove(message)
        self._store.tell(MessagesDeleted(channel, messages, bulk))

    def store_file(self, file: SimAttachment, *, ephemeral: bool) -> SimAttachment:
        """Gives a file an id, and stores it for the CDN."""
        if file.size_bytes > self._store.rules.file_size_bytes:
            raise too_large()
        kind = file.content_type or mimetypes.guess_type(file.filename)[0] or None
        if kind and kind.startswith(_TEXT_TYPES) and "charset" not in kind:
            kind += "; charset=utf-8"
        stored = replace(file, id=self._store.ids.fresh(), content_type=kind, ephemeral=ephemeral)
        self._store.files.by_id[stored.id] = stored
        return stored

    def store_upload(self, file: SimAttachment) -> SimAttachment:
        """Stores a file that comes with a command."""
        return self.store_file(file, ephemeral=True)

    def check_open(self, channel: SimChannel) -> None:
        if channel.thread and channel.thread.archived:
            raise bad(*ARCHIVED)

    def _same_nonce(self, author: SimUser, channel: SimChannel, nonce: str | int | None) -> SimMessage | None:
        earlier = None if nonce is None else channel.history.nonces.get((author.id, str(nonce)))
        if earlier is None or self._store.clock.now() - earlier.timestamp > self._store.rules.nonce_window:
            return None
        return earlier

    def _check_rights(self, author: SimUser, channel: SimChannel, draft: MessageDraft) -> None:
        if channel.kind not in WRITABLE and can_see(self._store, author, channel):
            raise bad(50008, "Cannot send messages in a non-text channel")
        needed = [P.SEND_MESSAGES_IN_THREADS if channel.is_thread else P.SEND_MESSAGES]
        needed += [P.ATTACH_FILES] if draft.attachments else []
        needed += [P.EMBED_LINKS] if draft.embeds else []
        needed += [P.SEND_POLLS] if draft.poll else []
        needed += [P.SEND_TTS_MESSAGES] if draft.tts else []
        require_permission(self._store, author, channel, *needed)
        recipients, guilds = channel.recipients, self._store.guilds.values()
        if not all(each.accepts_dms for each in recipients if each is not author):
            raise forbidden(50007, "Cannot send messages to this user")
        # A bot and a person need a server in common.
        ids = {each.id for each in recipients}
        if any(each.bot for each in recipients) and not any(ids <= guild.members.keys() for guild in guilds):
            raise forbidden(50007, "Cannot send messages to this user")
        thread = channel.thread
        if thread and thread.locked and not has_permission(self._store, author, channel, P.MANAGE_THREADS):
            raise bad(*ARCHIVED) if thread.archived else missing_permissions()

    def _check_size(self, draft: MessageDraft) -> None:
        limit = self._store.rules.content_length
        if len(draft.content) > limit:
            raise bad_form([too_long("content", limit)])
        if len(draft.attachments) > _MAX_FILES:
            raise bad_form([too_long("attachments", _MAX_FILES)])
        if draft.flags & MessageFlag.IS_COMPONENTS_V2 and (draft.content or draft.embeds or draft.poll):
            code = "MESSAGE_CANNOT_USE_LEGACY_FIELDS_WITH_COMPONENTS_V2"
            raise bad_field(
                "content", code, "The 'content' field cannot be used when using MessageFlags.IS_COMPONENTS_V2"
            )

    def _resolve(
        self, author: SimUser, channel: SimChannel, draft: MessageDraft
    ) -> tuple[SimReference | None, list[SimSnapshot]]:
        wanted = draft.reference
        if wanted is None or wanted.message_id is None:
            return None, []
        source = self._store.channels.get(wanted.channel_id)
        target = source.find(wanted.message_id) if source else None
        if wanted.kind == 1:
            if source is None or target is None or not can_see(self._store, author, source):
                raise unknown("Message")
            reference = SimReference(source.id, target.id, source.guild_id, 1)
            snapshot = SimSnapshot(
                body=target.body,
                kind=target.kind,
                timestamp=target.timestamp,
                edited=target.state.edited,
                flags=target.flags,
                mentions=target.mentioned.users,
            )
            return reference, [snapshot]
        if wanted.channel_id != channel.id:
            raise bad_field(
                "message_reference",
                "MESSAGE_REFERENCE_CHANNEL_MISMATCH",
                "Cannot reply to a message in a different channel",
            )
        if target is None:
            if wanted.fail_if_not_exists:
                raise bad_field("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
            return None, []
        if (
            not has_permission(self._store, author, channel, P.READ_MESSAGE_HISTORY)
            and not author.id == target.author.id
        ):
            raise bad(160002, "Cannot reply without permission to read message history")
        if target.kind not in (
            MessageKind.DEFAULT,
            MessageKind.REPLY,
            MessageKind.CHAT_INPUT_COMMAND,
            MessageKind.CONTEXT_MENU_COMMAND,
        ):
            raise bad_field(
                "message_reference", "REPLIES_CANNOT_REPLY_TO_SYSTEM_MESSAGE", "Cannot reply to a system message"
            )
        return SimReference(channel.id, target.id, channel.guild_id), []

    def _sticker(self, channel: SimChannel, sticker_id: int) -> SimSticker:
        for guild in self._store.guilds.values():
            if sticker := guild.expressions.stickers.get(sticker_id):
                if guild.id == channel.guild_id:
                    return sticker
                raise bad(50081, "Invalid sticker sent")
        raise unknown("Sticker")

    def _poll(self, draft: MessageDraft) -> SimPoll | None:
        if draft.poll is None:
            return None
        answers = [(each, None) if isinstance(each, str) else each for each in draft.poll.answers]
        if not 1 <= len(answers) <= 10:
            raise bad_field("poll.answers", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 10 in length.")
        life = max(draft.poll.duration, timedelta(hours=1))
        expiry = self._store.clock.now() + life
        return SimPoll(draft.poll.question, answers, expiry, draft.poll.multiple)

    def _enter_thread(self, channel: SimChannel, message: SimMessage) -> None:
        """Unarchives the thread, and adds the writer and those who are mentioned."""
        thread = channel.thread
        if thread is None:
            return
        starts = message.id == channel.id or message.kind is MessageKind.THREAD_STARTER_MESSAGE
        if not starts:
            message.state.position = thread.sent
            thread.sent += 1
        if thread.archived:
            thread.archived = False
            thread.archive_at = self._store.clock.now()
            self._store.tell(ThreadChanged(channel, "updated"))
        if message.kind is MessageKind.THREAD_STARTER_MESSAGE:
            return
        guild = self._store.get_guild_for(channel)
        coming = (
            [message.author, *message.mentioned.users] if message.origin.webhook_id is None else message.mentioned.users
        )
        parent = channel.parent
        added = [
            user
            for user in dict.fromkeys(coming)
            if guild
            and user.id in guild.members
            and user.id not in thread.members
            and parent
            and can_see(self._store, user, parent)
        ]
        for user in added:
            thread.members[user.id] = SimThreadMember(user, self._store.clock.now())
        if added:
            self._store.tell(ThreadMembersChanged(channel, added=added))
