"""The live preview of an answer: one message that grows and is at last replaced by the answer (inventory V12).

Its id is stored, so that after a crash it is found, reused or taken away. What it shows is best effort.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime

import anyio

from denizen.domain.conversation import Place
from denizen.domain.delivery import Content, Delivery, DeliveryKind, DeliveryState, delivery_id
from denizen.domain.errors import DenizenError
from denizen.domain.ids import TurnId
from denizen.engine.outbox.sent import find_sent
from denizen.ports.channel import Channel
from denizen.ports.store import Store

_log = logging.getLogger("denizen.outbox")


class Preview:
    """One for a turn. `stop` ends it: no edit of it comes after that."""

    def __init__(self, store: Store, channel: Channel, turn_id: TurnId, place: Place, *, reply_to: str) -> None:
        self._store = store
        self._channel = channel
        self._turn_id = turn_id
        self._place = place
        self._reply_to = reply_to
        self._lock = anyio.Lock()
        self._stopped = False
        self._message = ""

    async def show(self, text: str, *, now: datetime) -> None:
        """Posts or edits it. A fault of the platform ends the preview, never the turn."""
        async with self._lock:
            if self._stopped:
                return
            try:
                if self._message:
                    await self._channel.edit(self._place, self._message, Content(text))
                else:
                    await self._begin(text, now)
            except DenizenError as error:
                _log.info("preview ended", extra={"turn": self._turn_id, "code": error.code})
                self._stopped = True

    async def _begin(self, text: str, now: datetime) -> None:
        delivery = Delivery(
            delivery_id(self._turn_id, DeliveryKind.PREVIEW, 0), self._turn_id, 0, DeliveryKind.PREVIEW,
            self._channel.agent, self._place, Content(text), now, reply_to=self._reply_to, state=DeliveryState.SENDING,
        )  # fmt: skip
        async with self._store.work() as work:
            earlier = [d for d in await work.outbox.list_for_turn(self._turn_id) if d.id == delivery.id]
            await work.outbox.add([delivery])
        if earlier:  # begun before a restart
            await self._take_up(earlier[0], text)
            return
        self._message = await self._channel.post(
            self._place, Content(text), nonce=delivery.nonce, reply_to=self._reply_to
        )
        async with self._store.work() as work:
            await work.outbox.update(replace(delivery, state=DeliveryState.SENT, platform_id=self._message))

    async def _take_up(self, earlier: Delivery, text: str) -> None:
        """Goes on with the message of an earlier process, wherever that got to; one that is over is not begun anew."""
        self._message = earlier.platform_id or await find_sent(self._store, self._channel, earlier)
        if not self._message or earlier.state is DeliveryState.WITHDRAWN:
            self._stopped = True
            return
        await self._channel.edit(self._place, self._message, Content(text))
        async with self._store.work() as work:
            await work.outbox.update(replace(earlier, state=DeliveryState.SENT, platform_id=self._message))

    async def stop(self) -> None:
        """Waits for an edit that is under way."""
        self._stopped = True
        async with self._lock:
            pass
