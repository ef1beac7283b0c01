"""The outbox: writes down what is owed at the end of a turn, and sends it, each piece once.

A piece is marked before it is tried and after it has arrived. What was tried with an unknown end (a crash, a lost
connection) is looked for on the platform first, and only then sent again, with the same nonce. Places are served side
by side; at one place the pieces of an answer stand together (`room_order`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import anyio
from anyio.abc import TaskGroup

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import DUE, PIECES, Delivery, DeliveryKind, DeliveryState, MessageContent
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName, TurnId, fresh
from denizen.domain.rate_limit import RateLimit
from denizen.domain.speaker_choice import is_silence
from denizen.domain.turn import ReplyTarget, TurnStatus
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.audit.audit_log import delivery_event
from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.opening import UNWANTED, OpenTurn, end_unwanted, find_reply_target
from denizen.engine.intake.rate_limiter import take_rate
from denizen.engine.outbox.plan import (
    NOT_SHOWN,
    Announcement,
    TurnEnding,
    name_task,
    plan_announcement,
    plan_deliveries,
)
from denizen.engine.outbox.room_order import RoomOrder
from denizen.engine.outbox.sending import LivePreview, find_sent
from denizen.ports.channel import Channel, MentionNames
from denizen.ports.fleet import TurnRelay
from denizen.ports.inbox import MessageClaim
from denizen.ports.store import Store, UnitOfWork

BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
NAMES_TIMEOUT_S = 5.0
STALE_AFTER = timedelta(days=1)
"""An answer that could not be sent for so long would only puzzle people."""
IDLE_S = 30.0
"""How often the outbox looks for work that nobody announced: another process may have planned it."""

ARRIVAL_TIME = timedelta(minutes=2)
"""How long a message may be on its way to the platform."""
ONCE_A_MINUTE = RateLimit(1, 60.0)
LOOK_AT = 100
"""How many of the oldest pieces are looked at first."""

_AUDITED = frozenset({DeliveryKind.ANSWER, DeliveryKind.NOTICE, DeliveryKind.CARD})
"""Deliveries that stay posted; previews and signs do not."""
_OVER = frozenset({DeliveryState.WITHDRAWN, DeliveryState.FAILED})
_ON_OTHERS = (DeliveryKind.REACTION, DeliveryKind.CARD_END)
"""They change a message that is there; to do it twice is to do it once."""
_log = logging.getLogger("denizen.outbox")


@dataclass(slots=True)
class _Rounds:
    """One account's sending: a sign that there is work, the places that somebody works at, and those of them for which
    more work was announced meanwhile.
    """

    work: anyio.Event = field(default_factory=anyio.Event)
    busy: set[Place] = field(default_factory=set[Place])
    again: set[Place] = field(default_factory=set[Place])


class DeliveryOutbox:
    """One for all accounts; `run` is called once for each that is connected."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, channels: ConnectedAccounts) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._channels = channels
        self.relay: TurnRelay | None = None
        """Reaches the processes of a fleet that hold other accounts."""
        self._rounds: dict[tuple[str, AgentName], _Rounds] = {}
        self._previews: dict[TurnId, LivePreview] = {}
        self.rooms = RoomOrder(runtime, store)
        """Others who post in a room wait for their place here, too."""

    # --- planning ----------------------------------------------------------------------------------------------------

    async def plan(self, opened: OpenTurn, shown: Sequence[Mapping[str, Any]] = ()) -> list[Delivery]:
        """Plans the deliveries of the closed turn; none when its reply is not for a platform."""
        owed = opened.owed
        if owed is None or not opened.is_delivered:
            return []
        turn, place = name_task(opened.turn), opened.place
        if owed.may_be_silent and turn.status is TurnStatus.DONE and is_silence(turn.result.reply):
            return []
        names = await self._find_names(place, owed.account, turn.result.reply)
        earlier = await self._list_superseded(owed)
        account_policy = self._runtime.current.account_policy_for(place.platform, owed.account)
        ending = TurnEnding(
            turn=turn, place=place, owed=owed, account_policy=account_policy, names=names, shown=shown, earlier=earlier
        )
        return plan_deliveries(ending, now=self._clock.now())

    async def _list_superseded(self, owed: ReplyTarget) -> list[Delivery]:
        """Returns the deliveries of all turns for earlier texts of the question, the latest first."""
        found: list[Delivery] = []
        target: ReplyTarget | None = owed
        async with self._store.work(write=False) as work:
            while target is not None and target.supersedes:
                found += await work.outbox.list_for_turn(target.supersedes)
                target = find_reply_target(await work.turns.get(target.supersedes))
        return found

    async def _find_names(self, place: Place, account: AgentName, text: str) -> MentionNames:
        channel = self._channels.find(place.platform, account)
        if channel is None or "@" not in text:
            return MentionNames()
        try:
            with anyio.fail_after(NAMES_TIMEOUT_S):
                return await channel.find_names(place, text)
        except (DenizenError, TimeoutError):
            return MentionNames()

    def wake(self, platform: str, account: AgentName) -> None:
        """There is something to send, by this process or the one that holds the account."""
        if not self.wake_here(platform, account) and self.relay is not None:
            self.relay.wake_outbox(platform, account)

    def wake_here(self, platform: str, account: AgentName) -> bool:
        """False when this process does not send for the account."""
        rounds = self._rounds.get((platform, account))
        if rounds is not None:
            rounds.work.set()
        return rounds is not None

    async def say(self, channel: Channel, said: Announcement) -> bool:
        """Owes a text that no turn gave, and claims the message that it is about in the same moment. False, and nothing
        is owed, when it was to be the first word about that message and is not.
        """
        now = self._clock.now()
        claim = MessageClaim(channel.agent, channel.platform, said.about, refusal=said.refusal)
        account_policy = self._runtime.current.account_policy_for(channel.platform, channel.agent)
        async with self._store.work() as work:
            is_first = not said.about or bool(await work.inbox.claim([claim], now=now))
            is_owed = is_first or not said.is_first
            if is_owed:
                if said.topic:
                    topic = f"topic\x00{said.place.conversation_id}\x00{said.topic}"
                    is_told = await take_rate(work, topic, (ONCE_A_MINUTE,), now=now) is None
                    said = replace(said, sign="") if is_told else replace(said, text="")
                await work.outbox.add(plan_announcement(said, channel, account_policy, now=now))
        self.wake(channel.platform, channel.agent)
        return is_owed

    async def withdraw(self, channel: Channel, turn: TurnId) -> None:
        """The question of that turn is gone: it ends, what was not sent yet is not sent any more, nor is its preview
        left behind.
        """
        async with self._store.work() as work:
            await end_unwanted(work, turn, now=self._clock.now())
        await self.clear_preview(channel, turn)

    # --- sending -----------------------------------------------------------------------------------------------------

    async def run(self, channel: Channel) -> None:
        """Sends what the account owes, until it is cancelled."""
        rounds = self._rounds.setdefault((channel.platform, channel.agent), _Rounds())
        async with anyio.create_task_group() as group:
            group.start_soon(self._keep_sweeping, channel)
            while True:
                rounds.work = anyio.Event()
                await self._hand_out(group, channel, rounds)
                with anyio.move_on_after(IDLE_S):
                    await rounds.work.wait()

    async def _hand_out(self, group: TaskGroup, channel: Channel, rounds: _Rounds) -> None:
        rounds.again |= rounds.busy
        try:
            due = await self._list_due(channel, lambda delivery: delivery.target.place not in rounds.busy)
        except DenizenError as error:
            _log.warning("the outbox cannot be read", extra={"agent": channel.agent, **error.fields})
            return
        for place in dict.fromkeys(delivery.target.place for delivery in due):
            rounds.busy.add(place)
            group.start_soon(self._serve, channel, rounds, place)

    async def _list_due(self, channel: Channel, which: Callable[[Delivery], bool]) -> list[Delivery]:
        """The oldest of that sort. Looks further only where what is stuck stands before all of them."""
        limit = LOOK_AT
        while True:
            async with self._store.work(write=False) as work:
                due = await work.outbox.list_due(channel.agent, channel.platform, limit=limit)
            found = [delivery for delivery in due if which(delivery)]
            if found or len(due) < limit:
                return found
            limit *= 4

    async def _serve(self, channel: Channel, rounds: _Rounds, place: Place) -> None:
        """Sends everything that is due at one place, oldest first, turn by turn."""
        pause_s = BACKOFF_S
        try:
            while True:
                try:
                    mine = await self._list_due(channel, lambda delivery: delivery.target.place == place)
                    if not mine:
                        return
                    turn_id = mine[0].turn_id
                    async with self.rooms.enter(place, turn_id):
                        for delivery in (each for each in mine if each.turn_id == turn_id):
                            await self._send(channel, delivery)
                    await self.clear_preview(channel, turn_id)
                    pause_s = BACKOFF_S
                except DenizenError as error:
                    asked_s = error.retry_after_s if isinstance(error, Unavailable) else None
                    wait_s = max(asked_s or 0.0, pause_s)
                    _log.warning("delivery waits", extra={"agent": channel.agent, **error.fields, "wait_s": wait_s})
                    await anyio.sleep(wait_s)
                    pause_s = min(pause_s * 2, MAX_BACKOFF_S)
        finally:
            rounds.busy.discard(place)
            if place in rounds.again:  # perhaps after this one had looked for the last time
                rounds.again.discard(place)
                rounds.work.set()

    async def _send(self, channel: Channel, delivery: Delivery) -> None:
        """Raises what has to be tried again: Unavailable, and what only the operator can end."""
        try:
            if delivery.state is DeliveryState.SENDING and delivery.kind not in _ON_OTHERS:
                found = "" if delivery.platform_id else await find_sent(self._store, channel, delivery)
                if found:
                    await self._settle(channel, delivery, found)
                    return
            if self._clock.now() - delivery.created_at > STALE_AFTER:
                await self._end(delivery, DeliveryState.FAILED, failure="It waited too long to be sent.")
                return
            begun = await self._begin(delivery.id)
            if begun is not None:
                await self._settle(channel, begun, await self._hand_over(channel, begun))
        except (NotFound, NotAllowed, InvalidInput) as error:
            await self._give_up(channel, delivery, error)
        except DenizenError:
            raise
        except Exception:  # noqa: BLE001 - the boundary of a delivery
            reference = fresh("err")
            _log.exception("delivery fault", extra={"turn": delivery.turn_id, "reference": reference})
            await self._end(delivery, DeliveryState.FAILED, failure=f"Reference: {reference}")

    async def _begin(self, key: str) -> Delivery | None:
        """The piece as it is now, marked as tried; None when it is not wanted any more."""
        async with self._store.work() as work:
            delivery = await work.outbox.get(key)
            if delivery.state not in DUE:
                return None
            is_wanted = delivery.failure != UNWANTED
            state = DeliveryState.SENDING if is_wanted else DeliveryState.WITHDRAWN
            begun = replace(delivery, state=state, attempts=delivery.attempts + 1)
            await work.outbox.update(begun)
        return begun if is_wanted else None

    async def _settle(self, channel: Channel, delivery: Delivery, platform_id: str) -> None:
        """Notes that the piece has arrived. One that nobody wants any more is taken back: while it was on its way its
        question was deleted, or asked anew. What took an earlier message's place is left to the next answer.
        """
        async with self._store.work() as work:
            is_wanted = (await work.outbox.get(delivery.id)).failure != UNWANTED
            if is_wanted:
                await self._write(work, replace(delivery, state=DeliveryState.SENT, platform_id=platform_id))
        if not is_wanted:
            if platform_id != delivery.platform_id:
                await channel.delete(delivery.target.place, platform_id)
            await self._end(delivery, DeliveryState.WITHDRAWN)

    async def _give_up(self, channel: Channel, delivery: Delivery, error: DenizenError) -> None:
        """Sends the words alone, and says that something is missing: a message may be refused for its cards, files or
        buttons.
        """
        extra = {"agent": channel.agent, "turn": delivery.turn_id, **error.fields, "why": error.explain()}
        content = delivery.content
        plain = replace(content, text=self._admit_loss(channel, delivery), embeds=(), files=(), buttons=())
        has_extras = content.embeds or content.files or content.buttons
        if isinstance(error, NotFound) or not has_extras:
            _log.warning("delivery failed", extra=extra)
            await self._end(delivery, DeliveryState.FAILED, failure=error.explain())
            return
        _log.warning("delivery goes out as plain text", extra=extra)
        async with self._store.work() as work:
            latest = await work.outbox.get(delivery.id)
            plainer = replace(latest, content=plain, failure=latest.failure or error.explain())
            await work.outbox.update(plainer)
        await self._send(channel, plainer)

    def _admit_loss(self, channel: Channel, delivery: Delivery) -> str:
        text = delivery.content.text
        if text and delivery.kind is DeliveryKind.CARD:  # a card without buttons still says what to type
            return text
        told = f"{text}\n-# {NOT_SHOWN}" if text else NOT_SHOWN
        account_policy = self._runtime.current.account_policy_for(channel.platform, channel.agent)
        return told if len(told) <= account_policy.style.message_limit else text

    async def _hand_over(self, channel: Channel, delivery: Delivery) -> str:
        place, content = delivery.target.place, delivery.content
        if delivery.kind is DeliveryKind.REACTION:
            await channel.react(place, delivery.target.reply_to, content.text)
            return ""
        if delivery.kind is DeliveryKind.CARD_END:
            return await self._end_card(channel, delivery)
        if delivery.platform_id and content == MessageContent():
            await channel.delete(place, delivery.platform_id)
            return delivery.platform_id
        if delivery.platform_id:
            try:
                await channel.edit(place, delivery.platform_id, content)
            except NotFound:
                await self._note(replace(delivery, platform_id=""))
            else:
                return delivery.platform_id
        return await channel.post(
            place,
            content,
            nonce=delivery.nonce,
            reply_to=delivery.target.reply_to,
            ticket=delivery.target.ticket,
            goes_on=await self._goes_on(delivery),
        )

    async def _goes_on(self, delivery: Delivery) -> bool:
        """Whether it begins an answer to a command that has several messages."""
        if not delivery.target.ticket or delivery.position or delivery.kind not in PIECES:
            return False
        async with self._store.work(write=False) as work:
            of_turn = await work.outbox.list_for_turn(delivery.turn_id)
        return any(each.position and each.kind is delivery.kind for each in of_turn)

    async def _end_card(self, channel: Channel, delivery: Delivery) -> str:
        """The card that was sent before it; one that never arrived, or was deleted, needs no end."""
        async with self._store.work(write=False) as work:
            of_turn = await work.outbox.list_for_turn(delivery.turn_id)
        card = next(d for d in of_turn if d.kind is DeliveryKind.CARD and d.position == delivery.position)
        if card.platform_id:
            try:
                await channel.edit(delivery.target.place, card.platform_id, delivery.content)
            except NotFound:
                return ""
        return card.platform_id

    # --- previews ----------------------------------------------------------------------------------------------------

    def open_preview(self, channel: Channel, turn_id: TurnId, place: Place, *, reply_to: str) -> LivePreview:
        """The turn's live preview, which gives way to its answer."""
        return self._previews.setdefault(
            turn_id, LivePreview(self._store, channel, self.rooms, turn_id, place, reply_to=reply_to)
        )

    async def _keep_sweeping(self, channel: Channel) -> None:
        while True:
            try:
                await self.sweep_previews(channel)
            except DenizenError as error:
                _log.info("previews left behind", extra={"agent": channel.agent, **error.fields})
            await anyio.sleep(IDLE_S)

    async def sweep_previews(self, channel: Channel) -> None:
        """Takes away the previews of turns that have ended: left by a crash, or posted late by another process."""
        async with self._store.work(write=False) as work:
            previews = await work.outbox.list_open_previews(channel.agent, channel.platform)
        for preview in previews:
            await self.clear_preview(channel, preview.turn_id)

    async def clear_preview(self, channel: Channel, turn_id: TurnId) -> None:
        """Takes the preview away, whoever posted it, if its turn has ended and what is owed for it was sent."""
        async with self._store.work(write=False) as work:
            turn = await work.turns.find(turn_id)
        if turn is None or not turn.status.is_final:
            return
        live = self._previews.pop(turn_id, None)
        if live is not None:
            await live.stop()
        async with self._store.work(write=False) as work:
            of_turn = await work.outbox.list_for_turn(turn_id)
        preview = next((d for d in of_turn if d.kind is DeliveryKind.PREVIEW and d.state not in _OVER), None)
        if preview is not None and not any(d.kind in PIECES and d.state in DUE for d in of_turn):
            await self._drop_preview(channel, preview)

    async def _drop_preview(self, channel: Channel, preview: Delivery) -> None:
        """Deletes the preview's message. One that is not there may be on its way, from another process."""
        try:
            shown = preview.platform_id or await find_sent(self._store, channel, preview)
            if shown:
                await channel.delete(preview.target.place, shown)
        except DenizenError as error:
            _log.info("preview left behind", extra={"turn": preview.turn_id, **error.fields})
            return
        if shown or self._clock.now() - preview.created_at > ARRIVAL_TIME:
            await self._end(preview, DeliveryState.WITHDRAWN)

    async def _end(self, delivery: Delivery, state: DeliveryState, *, platform_id: str = "", failure: str = "") -> None:
        await self._note(replace(delivery, state=state, platform_id=platform_id, failure=failure))

    async def _note(self, delivery: Delivery) -> None:
        async with self._store.work() as work:
            await self._write(work, delivery)

    async def _write(self, work: UnitOfWork, delivery: Delivery) -> None:
        await work.outbox.update(delivery)
        if delivery.state is DeliveryState.SENT and delivery.kind in _AUDITED:
            await work.audit.add([delivery_event(delivery, self._clock.now())])
