"""An account that another process holds: its `Channel` here, and the other end there.

Each method is a call over the bus whose parameters and result are written by the type hints of the port, so that both
ends have the same words.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, cast, get_type_hints

from denizen.adapters.fleet.bus import FleetBus
from denizen.adapters.fleet.wire import from_json, to_json
from denizen.domain.action import OnBehalfOf, PlatformAction
from denizen.domain.conversation import Place
from denizen.domain.delivery import MessageContent
from denizen.domain.errors import NotFound, Unavailable
from denizen.domain.fleet import HeldAccount
from denizen.domain.ids import AgentName, derive, fresh
from denizen.domain.json import Json, JsonObject
from denizen.domain.principal import Principal
from denizen.domain.room import Post, Room
from denizen.ports.channel import Channel, EnterRoom, IncomingMessage, MembershipList, MentionNames

CHANNEL_CALL = "channel"
CALLED = frozenset(
    {
        "post",
        "edit",
        "delete",
        "react",
        "open_thread",
        "open_direct",
        "list_posts",
        "find_deleted",
        "find_names",
        "visible_rooms",
        "list_memberships",
        "find_roles",
        "act",
        "check_action",
        "is_open",
        "may_write",
        "may_post",
        "may_moderate",
    }
)
"""The methods that go over the bus."""


@cache
def _hints(method: str) -> Mapping[str, Any]:
    return get_type_hints(getattr(Channel, method), localns={"Json": object})


class RemoteChannel:
    """The account `held` of the process `node` (`denizen.ports.channel.Channel`). Raises Unavailable, too, when that
    process does not answer.
    """

    def __init__(self, bus: FleetBus, node: str, held: HeldAccount) -> None:
        self._bus = bus
        self.node = node
        self.held = held

    @property
    def platform(self) -> str:
        return self.held.platform

    @property
    def agent(self) -> AgentName:
        return self.held.agent

    @property
    def user_id(self) -> str:
        return self.held.user_id

    async def _call(self, method: str, /, *, once: str = "", **given: object) -> Any:  # noqa: ANN401 - as the method
        """`once` names what is to be done once, however often it is asked for."""
        body: JsonObject = {
            "platform": self.platform,
            "agent": self.agent,
            "method": method,
            "given": {name: to_json(value) for name, value in given.items()},
        }
        key = derive("call", self.platform, self.agent, method, once, json.dumps(body["given"])) if once else ""
        return from_json(_hints(method)["return"], await self._bus.request(self.node, CHANNEL_CALL, body, key=key))

    async def post(
        self,
        place: Place,
        content: MessageContent,
        *,
        nonce: str,
        reply_to: str = "",
        ticket: str = "",
        goes_on: bool = False,
        is_preview: bool = False,
    ) -> str:
        return await self._call(
            "post",
            once=nonce,
            place=place,
            content=content,
            nonce=nonce,
            reply_to=reply_to,
            ticket=ticket,
            goes_on=goes_on,
            is_preview=is_preview,
        )

    async def edit(self, place: Place, message_id: str, content: MessageContent) -> None:
        await self._call("edit", place=place, message_id=message_id, content=content)

    async def delete(self, place: Place, message_id: str) -> None:
        await self._call("delete", place=place, message_id=message_id)

    async def react(self, place: Place, message_id: str, emoji: str, *, on: bool = True) -> None:
        await self._call("react", place=place, message_id=message_id, emoji=emoji, on=on)

    @asynccontextmanager
    async def typing(self, place: Place) -> AsyncGenerator[None]:
        """Shows nothing: the process that holds the account shows what a turn is doing."""
        del place
        yield

    async def open_thread(self, place: Place, message_id: str, title: str) -> Room:
        return await self._call("open_thread", once=fresh("thread"), place=place, message_id=message_id, title=title)

    async def open_direct(self, user_id: str) -> Place:
        return await self._call("open_direct", user_id=user_id)

    async def list_posts(self, room_id: str, *, before: str = "", after: str = "", limit: int = 100) -> Sequence[Post]:
        return await self._call("list_posts", room_id=room_id, before=before, after=after, limit=limit)

    async def list_arrivals(self, room: Room, *, after: str, limit: int = 100) -> Sequence[IncomingMessage]:
        """Raises Unavailable: what was missed is read where the account is."""
        raise Unavailable(
            "What an account has missed is read by the process that holds it.",
            code="fleet_elsewhere",
            room=room.id,
            after=after,
            limit=limit,
        )

    async def find_deleted(self, rooms: Sequence[Room]) -> frozenset[str]:
        return await self._call("find_deleted", rooms=rooms)

    async def find_names(self, place: Place, text: str) -> MentionNames:
        return await self._call("find_names", place=place, text=text)

    async def visible_rooms(self, place: Place, principal: Principal) -> frozenset[str]:
        return await self._call("visible_rooms", place=place, principal=principal)

    async def list_memberships(self, user_id: str) -> MembershipList:
        return await self._call("list_memberships", user_id=user_id)

    async def find_roles(self, room_id: str, user_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        return await self._call("find_roles", room_id=room_id, user_ids=list(user_ids))

    async def act(self, action: PlatformAction, warrant: OnBehalfOf, *, enter: EnterRoom) -> JsonObject:
        """The room is entered where the account is, which posts there."""
        del enter
        return await self._call("act", once=warrant.key, action=action, warrant=warrant)

    async def check_action(self, action: PlatformAction, warrant: OnBehalfOf) -> None:
        await self._call("check_action", action=action, warrant=warrant)

    async def is_open(self, room: Room) -> bool:
        return await self._call("is_open", room=room)

    async def may_write(self, place: Place, principal: Principal) -> bool:
        return await self._call("may_write", place=place, principal=principal)

    async def may_post(self, place: Place, *, in_new_thread: bool = False) -> bool:
        return await self._call("may_post", place=place, in_new_thread=in_new_thread)

    async def may_moderate(self, room_id: str, principal: Principal) -> bool:
        return await self._call("may_moderate", room_id=room_id, principal=principal)


class ChannelHost:
    """Answers calls for the accounts that this process holds. `find` returns one of them; `enter` is the order of rooms
    here.
    """

    def __init__(self, bus: FleetBus, find: Callable[[str, AgentName], Channel | None], enter: EnterRoom) -> None:
        self._find = find
        self._enter = enter
        bus.answer(CHANNEL_CALL, self._answer)

    async def _answer(self, body: JsonObject) -> Json:
        platform, agent, method = str(body["platform"]), AgentName(str(body["agent"])), str(body["method"])
        channel = self._find(platform, agent)
        if channel is None or isinstance(channel, RemoteChannel):
            raise Unavailable("The account is not connected at the moment.", code="not_connected", fix="Try again.")
        if method not in CALLED:
            raise NotFound(f"Accounts have no {method[:40]}.", code="fleet_unknown")
        hints, rows = _hints(method), cast("dict[str, Any]", body["given"])
        given = {name: from_json(hints[name], value) for name, value in rows.items()}
        if method == "act":
            given["enter"] = self._enter
        call: Callable[..., Any] = getattr(channel, method)
        return to_json(await call(**given))
