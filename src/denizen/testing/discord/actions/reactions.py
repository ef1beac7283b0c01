"""Actions on a message or a channel besides writing: reactions, votes, pins, typing."""

from __future__ import annotations

from denizen.testing.discord.actions.messages import MessageActions
from denizen.testing.discord.state.access import has_permission, require_permission
from denizen.testing.discord.state.changes import (
    MessageEdited,
    PinsChanged,
    ReactionsChanged,
    ReactionsCleared,
    TypingStarted,
    VoteChanged,
)
from denizen.testing.discord.state.channels import WRITABLE, SimChannel
from denizen.testing.discord.state.errors import bad, forbidden, missing_permissions, unknown
from denizen.testing.discord.state.messages import MessageKind, SimEmoji, SimMessage, SimReaction, SimReference
from denizen.testing.discord.state.people import SimUser
from denizen.testing.discord.state.permissions import P
from denizen.testing.discord.state.store import SimStore

_MAX_KINDS = 20
_UNKNOWN_EMOJI = (10014, "Unknown Emoji")


class ReactionActions:
    """The actions on reactions, votes and pins of one store."""

    def __init__(self, store: SimStore, messages: MessageActions) -> None:
        self._store = store
        self._messages = messages

    def react(self, user: SimUser, channel: SimChannel, message: SimMessage, emoji: SimEmoji) -> None:
        """Adds a reaction; again changes nothing. A new emoji takes the right to add reactions, joining one
        does not.
        """
        require_permission(self._store, user, channel, P.READ_MESSAGE_HISTORY)
        self._messages.check_open(channel)
        reaction = find_reaction(message, emoji)
        if reaction is None:
            require_permission(self._store, user, channel, P.ADD_REACTIONS)
            if len(message.state.reactions) >= _MAX_KINDS:
                raise forbidden(30010, "Maximum number of reactions reached (20)")
            reaction = SimReaction(emoji)
            message.state.reactions.append(reaction)
        if user in reaction.users:
            return
        reaction.users.append(user)
        self._store.tell(ReactionsChanged(channel, message, user, reaction.emoji, added=True))

    def unreact(self, actor: SimUser, channel: SimChannel, message: SimMessage, emoji: SimEmoji, user: SimUser) -> None:
        """Removes one's own reaction, or with the right to manage messages somebody else's."""
        require_permission(
            self._store, actor, channel, *((P.MANAGE_MESSAGES,) if user is not actor else (P.READ_MESSAGE_HISTORY,))
        )
        self._messages.check_open(channel)
        reaction = find_reaction(message, emoji)
        if reaction is None:
            raise bad(*_UNKNOWN_EMOJI)
        if user not in reaction.users:
            return
        reaction.users.remove(user)
        if not reaction.users:
            message.state.reactions.remove(reaction)
        self._store.tell(ReactionsChanged(channel, message, user, reaction.emoji, added=False))

    def clear_reactions(self, actor: SimUser, channel: SimChannel, message: SimMessage, emoji: SimEmoji | None) -> None:
        require_permission(self._store, actor, channel, P.MANAGE_MESSAGES)
        message.state.reactions = [
            each for each in message.state.reactions if emoji is not None and each.emoji.key != emoji.key
        ]
        self._store.tell(ReactionsCleared(channel, message, emoji))

    def parse_emoji(self, text: str) -> SimEmoji:
        """Parses the emoji itself, `name:id` or `<:name:id>`. Raises 400/10014."""
        bare = text.strip("<>").removeprefix("a:").strip(":")
        name, _, number = bare.partition(":")
        if not number:
            if not bare or bare.isascii():
                raise bad(*_UNKNOWN_EMOJI)
            return SimEmoji(bare)
        for guild in self._store.guilds.values():
            if number.isdigit() and (emoji := guild.expressions.emojis.get(int(number))):
                return emoji
        raise bad(*_UNKNOWN_EMOJI) if name else unknown("Emoji")

    def vote(
        self, user: SimUser, channel: SimChannel, message: SimMessage, answer_id: int, *, chosen: bool = True
    ) -> None:
        require_permission(self._store, user, channel, P.READ_MESSAGE_HISTORY)
        poll = message.body.poll
        if poll is None or not 1 <= answer_id <= len(poll.answers):
            raise bad(520000, "Poll voting blocked")
        if poll.finalized or poll.expiry <= self._store.clock.now():
            raise bad(520001, "Poll expired")
        voters = poll.votes.setdefault(answer_id, [])
        if chosen == (user in voters):
            return
        if not chosen:
            voters.remove(user)
        else:
            earlier = [number for number, users in poll.votes.items() if user in users]
            for number in earlier if not poll.multiple else ():
                self.vote(user, channel, message, number, chosen=False)
            voters.append(user)
        self._store.tell(VoteChanged(channel, message, user, answer_id, chosen))

    def end_poll(self, user: SimUser, channel: SimChannel, message: SimMessage) -> None:
        """Ends a poll, for its author only. The result is a message of its own."""
        if message.body.poll is None:
            raise bad(520006, "Cannot expire a non-poll message")
        if message.author is not user:
            raise forbidden(50005, "Cannot edit a message authored by another user")
        message.body.poll.finalized = True
        message.body.poll.expiry = min(message.body.poll.expiry, self._store.clock.now())
        self._store.tell(MessageEdited(channel, message))

    def pin(self, user: SimUser, channel: SimChannel, message: SimMessage) -> None:
        self._demand_pins(user, channel)
        if message.pinned:
            return
        if sum(each.pinned for each in channel.history) >= self._store.rules.pins:
            raise bad(30003, f"Maximum number of pins reached ({self._store.rules.pins})")
        now = self._store.clock.now()
        message.state.pinned_at = channel.history.last_pin_at = now
        self._store.tell(MessageEdited(channel, message))
        self._store.tell(PinsChanged(channel))
        notice = self._messages.make(user, channel, MessageKind.CHANNEL_PINNED_MESSAGE)
        notice.reference = SimReference(channel.id, message.id, channel.guild_id)
        self._messages.place(channel, notice)

    def unpin(self, user: SimUser, channel: SimChannel, message: SimMessage) -> None:
        self._demand_pins(user, channel)
        if not message.pinned:
            return
        message.state.pinned_at = None
        self._store.tell(MessageEdited(channel, message))
        self._store.tell(PinsChanged(channel))

    def type_in(self, user: SimUser, channel: SimChannel) -> None:
        if channel.kind not in WRITABLE:
            raise bad(50008, "Cannot send messages in a non-text channel")
        require_permission(
            self._store, user, channel, P.SEND_MESSAGES_IN_THREADS if channel.is_thread else P.SEND_MESSAGES
        )
        self._store.tell(TypingStarted(channel, user, self._store.clock.now()))

    def _demand_pins(self, user: SimUser, channel: SimChannel) -> None:
        self._messages.check_open(channel)
        require_permission(self._store, user, channel)
        if not has_permission(self._store, user, channel, P.PIN_MESSAGES):
            raise missing_permissions()


def find_reaction(message: SimMessage, emoji: SimEmoji) -> SimReaction | None:
    return next((each for each in message.state.reactions if each.emoji.key == emoji.key), None)
