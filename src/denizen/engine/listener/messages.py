"""One message from its arrival on: mirrors it, decides whether it is for the agent, and hands it
to `turn_start`, which submits the turn.

`AccountListener` hands in new messages, edits and deletions; the catch-up hands in what was missed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import field

import anyio

from denizen.domain.agent import ContextStrategy
from denizen.domain.attention import Attention, Trigger
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound
from denizen.domain.file_text import add_file_texts, may_have_text
from denizen.domain.handover import is_exit
from denizen.domain.ids import AgentName, fresh
from denizen.domain.message import FilePart
from denizen.domain.names import quote_name
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.record import record
from denizen.domain.room import Room
from denizen.engine.archive.mirror import ArchiveMirror
from denizen.engine.intake.opening import load_turn
from denizen.engine.intake.rate_limiter import RateLimiter
from denizen.engine.intake.turn_queue import TurnQueues
from denizen.engine.listener.arbiter import SpeakerArbiter, SpeakingOrder
from denizen.engine.listener.background import BackgroundTasks
from denizen.engine.listener.blocked_rooms import BlockedRooms
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.cursors import ReadCursors
from denizen.engine.listener.interactions import TypedCommands
from denizen.engine.listener.reading import MessageReader
from denizen.engine.listener.turn_display import TurnDisplay
from denizen.engine.listener.turn_start import TurnStarter
from denizen.ports.channel import IncomingMessage

FILES_TIMEOUT_S = 20.0
"""For reading the files of a message; the room's next messages wait meanwhile."""
FILES_READ = RateLimit(calls=30, window_s=HOUR_S)
"""Messages of one person whose files are read although nobody asked for it; of further ones the names are known."""

_UNASKED = frozenset({Trigger.KEYWORD, Trigger.ALWAYS})
"""Triggers by which the agent joins in without having been addressed."""

_log = logging.getLogger("denizen.listener")


@record
class MessageDecision:
    """The decision about a message. `order` says who answers it, where this agent does."""

    attention: Attention
    order: SpeakingOrder = field(default_factory=lambda: SpeakingOrder(()))


@record(kw_only=True)
class MessageServices:
    """The parts of one account's listener that the handling of a message needs."""

    reader: MessageReader
    starter: TurnStarter
    blocked: BlockedRooms
    display: TurnDisplay
    typed: TypedCommands
    cursors: ReadCursors
    arbiter: SpeakerArbiter
    mirror: ArchiveMirror
    background: BackgroundTasks


class MessageHandler:
    """Handles the messages of one account. `read_again` reads a room again in which a message was not handled."""

    def __init__(self, context: AccountContext, services: MessageServices, read_again: Callable[[Room], None]) -> None:
        self._context = context
        self._reader = services.reader
        self._starter = services.starter
        self._blocked = services.blocked
        self._display = services.display
        self._typed = services.typed
        self._cursors = services.cursors
        self._arbiter = services.arbiter
        self._archive = services.mirror
        self._background = services.background
        self._limiter = RateLimiter(context.store, context.clock)
        self._read_again = read_again
        self._queue = TurnQueues()
        self._waiting: dict[str, IncomingMessage] = {}
        """Questions that other agents answer first, by the id of the post."""

    async def handle(self, message: IncomingMessage) -> None:
        """Mirrors the message, decides about it and answers it.

        Messages of a room are handled one after another, also while its past is caught up: the same message may come
        both ways.
        """
        async with self._queue.turn(message.room.id):
            await self.mirror(message)
            if not message.is_mine:
                await self._consider(message)

    async def mirror(self, message: IncomingMessage) -> None:
        post, roles = message.post, {message.post.author.id: message.roles}
        await self._archive.keep([post], roles)
        if not (self._reads_transcripts and any(map(may_have_text, post.attachments))):
            return
        async with self._context.store.work(write=False) as work:
            kept = await work.archive.find(post.platform, post.id)
        if kept is None or kept.changes.deleted_at is not None or any(file.text for file in kept.attachments):
            return
        if await self._limiter.take(f"files\x00{post.platform}\x00{post.author.id}", (FILES_READ,)) is not None:
            return
        with anyio.move_on_after(FILES_TIMEOUT_S):
            files = [part for part in await message.load_parts() if isinstance(part, FilePart)]
            await self._archive.keep([add_file_texts(post, files)], roles)

    @property
    def _reads_transcripts(self) -> bool:
        """Whether an agent reads the whole talk, with the files that people attach to it."""
        agents = self._context.runtime.current.agents.values()
        return any(agent.history.context is ContextStrategy.TRANSCRIPT for agent in agents)

    async def decide(self, message: IncomingMessage) -> MessageDecision:
        """Decides what to do about the message. Where other agents speak instead, it is not for this one."""
        attention = await self._reader.decide(message)
        if not attention.answers:
            return MessageDecision(attention)
        order = await self._arbiter.decide(self._reader, message)
        if self._context.account not in order.speakers:
            return MessageDecision(Attention())
        return MessageDecision(attention, order)

    async def _consider(self, message: IncomingMessage) -> None:
        post, context = message.post, self._context
        if not post.author.is_bot and not message.is_edit:
            await context.bot_replies.reset(context.platform, message.room.id)
        decision = await self.decide(message)
        attention = decision.attention
        if (
            attention.trigger is None
            or self._typed.is_running(post.id)
            or (message.is_edit and not self._is_soon(message))
        ):
            return
        if post.id in self._waiting:
            self._waiting[post.id] = message  # its latest text is answered
            return
        if await self._reader.is_claimed(post.id):
            if message.is_edit and attention.answers:
                await self._answer_edited(message)
            return
        if attention.refusal is not None:
            await self._starter.refuse(message, attention.refusal)
        elif await self._blocked.is_blocked(message):
            await self._blocked.tell(message, is_addressed=attention.trigger not in _UNASKED)
        elif is_exit(message.question) and await self._end_handover(message):
            return
        elif not self._typed.take(message):
            await self._answer_in_order(message, decision.order)

    async def _end_handover(self, message: IncomingMessage) -> bool:
        """Takes the room back from the agent that it was handed to. Returns False where none has it, and for a bot,
        which says what others made it say.
        """
        context, post = self._context, message.post
        if post.author.is_bot or message.is_unsure or message.is_edit:
            return False
        why = f"{quote_name(post.author.name) or 'Somebody'} has ended it"
        if not await context.handovers.end(context.account, message.room.place, why, key=post.id):
            return False
        await self._starter.say(message, "", refusal="exit")
        return True

    def _is_soon(self, edit: IncomingMessage) -> bool:
        post = edit.post
        edited_at = post.changes.edited_at or self._context.clock.now()
        return (edited_at - post.created_at).total_seconds() <= self._context.account_policy.limits.edit_window_s

    async def _answer_in_order(self, message: IncomingMessage, order: SpeakingOrder) -> None:
        """Answers after those who were addressed before, to have read what they said."""
        earlier = order.before(self._context.account)
        if not earlier:
            await self._answer(message, may_be_silent=order.is_open)
            return
        self._waiting[message.post.id] = message
        self._cursors.hold(message.room.id)
        self._background.start("waiting for other agents", self._answer_after, earlier, message)

    async def _answer_after(self, earlier: Sequence[AgentName], message: IncomingMessage) -> None:
        """The cursor of the room is held meanwhile, so that a crash does not lose the message."""
        post_id, room = message.post.id, message.room
        is_over = True
        try:
            await self._arbiter.wait_for(self._context, earlier, message)
            async with self._queue.turn(room.id):
                latest = self._waiting.pop(post_id, None)
                if latest is not None:  # else it was deleted meanwhile
                    await self._answer(latest)
        except DenizenError as error:
            _log.warning("message is handled later", extra={"room": room.id, "post": post_id, **error.fields})
            self._read_again(room)
        except anyio.get_cancelled_exc_class():
            is_over = False  # the next process reads it again
            raise
        finally:
            self._waiting.pop(post_id, None)
            if is_over:
                self._cursors.release(room.id)

    async def _answer(self, message: IncomingMessage, *, may_be_silent: bool = False) -> None:
        if not message.question.strip() and not message.post.reply_to:  # nothing but a mention
            await self._starter.say(message, self._context.account_policy.style.greeting)
            return
        try:
            await self._mirror_earlier(message)
            started = await self._starter.start(message, may_be_silent=may_be_silent)
        except (NotFound, NotAllowed, InvalidInput) as error:  # the author can do something about it
            await self._starter.say(message, error.explain())
            return
        except DenizenError:  # the message is read again
            raise
        except Exception:  # noqa: BLE001 - the boundary of a message
            reference = fresh("err")
            _log.exception("message fault", extra={"post": message.post.id, "reference": reference})
            await self._starter.say(message, f"Something went wrong inside. Reference: {reference}.")
            return
        if started is not None:
            self._display.show(started)

    async def _answer_edited(self, message: IncomingMessage) -> None:
        """Stops the turn of the earlier text, and answers the new text instead."""
        started = await self._starter.start_edited(message)
        if started is not None:
            self._display.show(started)

    async def _mirror_earlier(self, message: IncomingMessage) -> None:
        """Mirrors what was said before a question, on platforms that tell of it only when they are asked."""
        earlier = await message.load_earlier()
        roles = {each.post.author.id: each.roles for each in earlier}
        await self._archive.keep([each.post for each in earlier], roles)

    # --- missed messages ---------------------------------------------------------------------------------------------

    async def collect_late(self, message: IncomingMessage, late: list[IncomingMessage]) -> None:
        """Handles a missed message; one that is too old for a reply of its own is added to `late` instead."""
        age = self._context.clock.now() - message.post.created_at
        is_late = age.total_seconds() > self._context.account_policy.limits.missed_limit_s
        attention = (await self.decide(message)).attention if is_late and not message.is_mine else Attention()
        if attention.trigger is None:
            await self.handle(message)
            return
        await self.mirror(message)
        # A refusal is not told so late either.
        if attention.answers and not await self._reader.is_claimed(message.post.id):
            late.append(message)

    async def answer_late(self, late: Sequence[IncomingMessage]) -> None:
        """Answers several late messages with one reply."""
        if await self._blocked.is_blocked(late[-1]):
            await self._blocked.tell(late[-1], is_addressed=False)
            return
        try:
            await self._mirror_earlier(late[-1])
            started = await self._starter.start_missed(late)
        except (NotAllowed, NotFound, InvalidInput) as error:  # a person can do something about it
            await self._starter.say(late[-1], error.explain())
            return
        if started is not None:
            self._display.show(started)

    # --- deletions ---------------------------------------------------------------------------------------------------

    async def delete(self, post_ids: Sequence[str]) -> None:
        """Ends the turns of deleted questions. A turn that answers several ends when all of them are gone."""
        context = self._context
        for post_id in post_ids:
            self._waiting.pop(post_id, None)
        await self._archive.delete(context.platform, post_ids)
        for post_id in await self._reader.find_claimed(post_ids):
            found = await self._reader.find_turn(post_id)
            if found is None:
                continue
            opened = await load_turn(context.store, found[1])
            if opened.owed is None or set(opened.owed.answers) <= set(post_ids):
                context.turns.cancel(opened.turn.id)
                await context.outbox.withdraw(context.channel, opened.turn.id)
