"""The outbox: writes down what is owed at the end of a turn, and sends it, each piece once (promise 1).

A piece is marked before it is tried and after it has arrived. What was tried with an unknown end (a crash, a lost
connection) is looked for on the platform first, and only then sent again, with the same nonce. Pieces for one place
go out in order; places side by side.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import Content, Delivery, DeliveryKind, DeliveryState, delivery_id
from denizen.domain.errors import DenizenError, InvalidInput, NotAllowed, NotFound, Unavailable
from denizen.domain.ids import AgentName, TurnId, turn_id
from denizen.engine.channels import Channels
from denizen.engine.opening import Opened
from denizen.engine.outbox.plan import Ending, plan_contents, plan_deliveries
from denizen.engine.outbox.preview import Preview
from denizen.engine.outbox.sent import find_sent
from denizen.engine.runtime import Runtime
from denizen.ports.channel import Channel, Names
from denizen.ports.store import Store

BACKOFF_S = 1.0
MAX_BACKOFF_S = 60.0
NAMES_TIMEOUT_S = 5.0
IDLE_S = 30.0
"""How often the outbox looks for work that nobody announced: another process may have planned it."""

_log = logging.getLogger("denizen.outbox")


@dataclass(slots=True)
class _Rounds:
    """One account's sending: a sign that there is work, and the places that somebody works at."""

    work: anyio.Event = field(default_factory=anyio.Event)
    busy: set[Place] = field(default_factory=set[Place])


class Outbox:
    """One for all accounts; `run` is called once for each that is connected."""

    def __init__(self, runtime: Runtime, store: Store, clock: Clock, channels: Channels) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._channels = channels
        self._rounds: dict[tuple[str, AgentName], _Rounds] = {}
        self._previews: dict[TurnId, Preview] = {}

    # --- planning ----------------------------------------------------------------------------------------------------

    async def plan(self, opened: Opened, shown: Sequence[Mapping[str, Any]] = ()) -> list[Delivery]:
        """What the closed turn owes; nothing when its reply is not for a platform."""
        owed = opened.owed
        if owed is None:
            return []
        turn, place = opened.turn, opened.place
        names = await self._find_names(place, owed.account, turn.reply)
        earlier: Sequence[Delivery] = ()
        if owed.supersedes:
            async with self._store.work(write=False) as work:
                earlier = await work.outbox.list_of_turn(owed.supersedes)
        manners = self._runtime.current.manners_of(owed.account)
        ending = Ending(turn, place, owed, manners, names, shown, earlier)
        return plan_deliveries(ending, now=self._clock.now())

    async def _find_names(self, place: Place, account: AgentName, text: str) -> Names:
        channel = self._channels.find(place.platform, account)
        if channel is None or "@" not in text:
            return Names()
        try:
            with anyio.fail_after(NAMES_TIMEOUT_S):
                return await channel.find_names(place, text)
        except (DenizenError, TimeoutError):
            return Names()

    def wake(self, platform: str, account: AgentName) -> None:
        """There is something to send."""
        rounds = self._rounds.get((platform, account))
        if rounds is not None:
            rounds.work.set()

    async def say(self, channel: Channel, place: Place, text: str, *, reply_to: str, key: str) -> None:
        """Owes a text that no turn gave: a refusal, a greeting, what a command found. The same `key` is the same."""
        contents = plan_contents(text, Names(), self._runtime.current.manners_of(channel.agent))
        await self._owe(channel, place, DeliveryKind.NOTICE, contents, reply_to=reply_to, key=key)

    async def sign(self, channel: Channel, place: Place, emoji: str, *, on: str) -> None:
        """Owes a reaction."""
        await self._owe(channel, place, DeliveryKind.REACTION, [Content(emoji)], reply_to=on, key=on)

    async def _owe(
        self,
        channel: Channel,
        place: Place,
        kind: DeliveryKind,
        contents: Sequence[Content],
        *,
        reply_to: str,
        key: str,
    ) -> None:
        turn, now = turn_id(channel.agent, channel.platform, f"said:{key}"), self._clock.now()
        deliveries = [
            Delivery(
                delivery_id(turn, kind, position), turn, position, kind, channel.agent, place, content, now,
                reply_to=reply_to if position == 0 else "",
            )
            for position, content in enumerate(contents)
        ]  # fmt: skip
        async with self._store.work() as work:
            await work.outbox.add(deliveries)
        self.wake(channel.platform, channel.agent)

    async def withdraw(self, turn: TurnId) -> None:
        """What was not sent yet of that turn is not sent any more: its question is gone."""
        async with self._store.work() as work:
            for delivery in await work.outbox.list_of_turn(turn):
                if delivery.state is DeliveryState.PENDING:
                    await work.outbox.update(replace(delivery, state=DeliveryState.WITHDRAWN))

    # --- sending -----------------------------------------------------------------------------------------------------

    async def run(self, channel: Channel) -> None:
        """Sends what the account owes, until it is cancelled."""
        rounds = self._rounds.setdefault((channel.platform, channel.agent), _Rounds())
        async with anyio.create_task_group() as group:
            while True:
                rounds.work = anyio.Event()
                await self._hand_out(group, channel, rounds)
                with anyio.move_on_after(IDLE_S):
                    await rounds.work.wait()

    async def _hand_out(self, group: TaskGroup, channel: Channel, rounds: _Rounds) -> None:
        try:
            async with self._store.work(write=False) as work:
                due = await work.outbox.list_due(channel.agent, channel.platform)
        except Unavailable:
            _log.warning("the outbox cannot be read", extra={"agent": channel.agent})
            return
        for place in dict.fromkeys(delivery.place for delivery in due):
            if place not in rounds.busy:
                rounds.busy.add(place)
                group.start_soon(self._serve, channel, rounds, place)

    async def _serve(self, channel: Channel, rounds: _Rounds, place: Place) -> None:
        """Sends everything that is due at one place, oldest first."""
        pause_s = BACKOFF_S
        try:
            while True:
                try:
                    async with self._store.work(write=False) as work:
                        due = await work.outbox.list_due(channel.agent, channel.platform)
                    mine = [delivery for delivery in due if delivery.place == place]
                    if not mine:
                        return
                    for delivery in mine:
                        await self._send(channel, delivery)
                    pause_s = BACKOFF_S
                except Unavailable as error:
                    wait_s = max(error.retry_after_s or 0.0, pause_s)
                    _log.warning("delivery waits", extra={"agent": channel.agent, "code": error.code, "wait_s": wait_s})
                    await anyio.sleep(wait_s)
                    pause_s = min(pause_s * 2, MAX_BACKOFF_S)
        finally:
            rounds.busy.discard(place)

    async def _send(self, channel: Channel, delivery: Delivery) -> None:
        """Raises Unavailable when it has to be tried again."""
        try:
            if delivery.state is DeliveryState.SENDING and delivery.kind is not DeliveryKind.REACTION:
                found = "" if delivery.platform_id else await find_sent(self._store, channel, delivery)
                if found:
                    await self._end(delivery, DeliveryState.SENT, platform_id=found)
                    return
            delivery = replace(delivery, state=DeliveryState.SENDING, attempts=delivery.attempts + 1)
            await self._note(delivery)
            platform_id = await self._hand_over(channel, delivery)
            await self._end(delivery, DeliveryState.SENT, platform_id=platform_id)
        except (NotFound, NotAllowed, InvalidInput) as error:
            _log.warning(
                "delivery failed",
                extra={"agent": channel.agent, "turn": delivery.turn_id, "code": error.code, "why": error.explain()},
            )
            await self._end(delivery, DeliveryState.FAILED, failure=error.explain())

    async def _hand_over(self, channel: Channel, delivery: Delivery) -> str:
        place, content = delivery.place, delivery.content
        if delivery.kind is DeliveryKind.REACTION:
            await channel.react(place, delivery.reply_to, content.text)
            return ""
        if delivery.platform_id and content == Content():
            await channel.delete(place, delivery.platform_id)
            return ""
        if delivery.position == 0 and not delivery.platform_id:
            delivery = await self._take_preview(channel, delivery)
        if delivery.platform_id:
            try:
                await channel.edit(place, delivery.platform_id, content)
            except NotFound:
                await self._note(replace(delivery, platform_id=""))
            else:
                return delivery.platform_id
        return await channel.post(
            place, content, nonce=delivery.nonce, reply_to=delivery.reply_to, ticket=delivery.ticket
        )

    async def _take_preview(self, channel: Channel, delivery: Delivery) -> Delivery:
        """The live preview becomes the first piece: noted first, so that a repetition edits the same message. One that
        would have to ping is deleted instead, since an edit pings nobody.
        """
        live = self._previews.pop(delivery.turn_id, None)
        if live is not None:
            await live.stop()
        async with self._store.work(write=False) as work:
            of_turn = await work.outbox.list_of_turn(delivery.turn_id)
        preview = next((d for d in of_turn if d.kind is DeliveryKind.PREVIEW), None)
        if preview is None or preview.state in (DeliveryState.WITHDRAWN, DeliveryState.FAILED):
            return delivery
        shown = preview.platform_id or await find_sent(self._store, channel, preview)
        if shown and (delivery.content.ping_users or delivery.content.ping_roles):
            await channel.delete(delivery.place, shown)
            shown = ""
        taken = replace(delivery, platform_id=shown)
        async with self._store.work() as work:
            await work.outbox.update(replace(preview, state=DeliveryState.WITHDRAWN, platform_id=""))
            await work.outbox.update(taken)
        return taken

    # --- previews ----------------------------------------------------------------------------------------------------

    def open_preview(self, channel: Channel, turn_id: TurnId, place: Place, *, reply_to: str) -> Preview:
        """The turn's live preview, which its answer will replace."""
        return self._previews.setdefault(turn_id, Preview(self._store, channel, turn_id, place, reply_to=reply_to))

    async def sweep_previews(self, channel: Channel) -> None:
        """Takes away previews of turns that ended without an answer: stopped, or lost in a crash."""
        async with self._store.work(write=False) as work:
            previews = await work.outbox.list_open_previews(channel.agent, channel.platform)
            turns = {preview.turn_id: await work.turns.find(preview.turn_id) for preview in previews}
            owed = {d.turn_id for d in await work.outbox.list_due(channel.agent, channel.platform, limit=1000)}
        for preview in previews:
            turn = turns[preview.turn_id]
            if preview.turn_id not in owed and (turn is None or turn.status.is_final):
                await self.drop_preview(channel, preview)

    async def drop_preview(self, channel: Channel, preview: Delivery) -> None:
        """Deletes the preview's message, if it is there."""
        live = self._previews.pop(preview.turn_id, None)
        if live is not None:
            await live.stop()
        try:
            shown = preview.platform_id or await find_sent(self._store, channel, preview)
            if shown:
                await channel.delete(preview.place, shown)
        except DenizenError as error:
            _log.info("preview left behind", extra={"turn": preview.turn_id, "code": error.code})
            return
        await self._end(preview, DeliveryState.WITHDRAWN)

    async def _end(self, delivery: Delivery, state: DeliveryState, *, platform_id: str = "", failure: str = "") -> None:
        await self._note(replace(delivery, state=state, platform_id=platform_id, failure=failure))

    async def _note(self, delivery: Delivery) -> None:
        async with self._store.work() as work:
            await work.outbox.update(delivery)
