"""Messages between the processes of a fleet, by LISTEN and NOTIFY of the Postgres that they share.

A message reaches those who listen at that moment, in the order in which its sender sent it. Long ones go in parts,
since a notification has less than 8,000 bytes (PostgreSQL manual, NOTIFY). A call is a message that is answered. While
the database is away nothing arrives, and what should be sent waits for it, the oldest dropped first.

Anybody who may connect to a database may listen to it and notify it, so messages are encrypted and signed with a key
that stands in a table, which only Denizen's user reads.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import psycopg
from anyio.abc import TaskGroup
from cryptography.fernet import Fernet, InvalidToken
from psycopg.sql import SQL, Identifier

from denizen.adapters.fleet.wire import read_error, write_error
from denizen.domain.errors import DenizenError, Unavailable
from denizen.domain.ids import fresh
from denizen.domain.json import Json, JsonObject

CHANNEL = "denizen_fleet"
PART_BYTES = 7000
AT_ONCE = 200
"""So many notifications go in one statement."""
MAX_WAITING = 20_000
MAX_PARTS = 8192
"""The most parts of one message: some 57 MB."""
MAX_OPEN = 100
"""So many messages whose parts are on their way."""
REMEMBERED = 20_000
"""So many messages are known again: a connection that broke, or somebody who listened, may have sent one twice."""
LIFE_S = 300
"""How old a message may be, in seconds, by the clocks of two machines."""
CALL_TIMEOUT_S = 30.0
ASK_AGAIN_S = 8.0
"""A call without an answer is sent again so often: the word or its answer may have been missed."""
KEPT_ANSWERS = 300
KEPT_BYTES = 16_384
"""Longer answers are not kept for those who ask again: they are lookups, which are done anew."""
RECONNECT_S = 1.0
CONNECT_TIMEOUT_S = 5

Hear = Callable[[str, JsonObject], object]
"""Gets the sender's name and the message."""
Answer = Callable[[JsonObject], Awaitable[Json]]

_log = logging.getLogger("denizen.fleet")


class FleetBus:
    """The bus as the process `node` uses it. Names of nodes and topics have no blanks."""

    def __init__(self, url: str, node: str, key: str) -> None:
        self._url = url
        self.node = node
        self._fernet = Fernet(key)
        self._outgoing: deque[str] = deque(maxlen=MAX_WAITING)
        self._news = anyio.Event()
        self._hearers: dict[str, list[Hear]] = {}
        self._answerers: dict[str, Answer] = {}
        self._calls: dict[str, _Call] = {}
        self._under_way: dict[str, _Action] = {}
        """The actions that others have asked for and that are not done yet, by the keys of the calls."""
        self._answered: dict[str, Json] = {}
        """The results of those that were done lately, by the same keys."""
        self._parts: dict[str, list[str]] = {}
        self._heard = _HeardMessages()
        self._group: TaskGroup | None = None
        self.connected = anyio.Event()
        """Set when it has listened for the first time."""
        self.hear("call", self._take_call)
        self.hear("answer", self._take_answer)
        self.hear("drop", self._take_drop)

    # --- sending -----------------------------------------------------------------------------------------------------

    def send(self, topic: str, body: JsonObject, *, to: str = "*") -> None:
        """Sends to one process, or to all others. Returns at once."""
        told = json.dumps({"from": self.node, "to": to, "topic": topic, "body": body}, separators=(",", ":"))
        text, key = self._fernet.encrypt(told.encode()).decode(), fresh("m")
        parts = [text[at : at + PART_BYTES] for at in range(0, len(text), PART_BYTES)]
        if len(parts) > MAX_PARTS:
            _log.warning("a message of the fleet is too long", extra={"topic": topic, "chars": len(text)})
            return
        for number, part in enumerate(parts):
            self._outgoing.append(f"{key} {number} {len(parts)}\n{part}")
        news, self._news = self._news, anyio.Event()
        news.set()

    async def request(
        self, to: str, method: str, body: JsonObject, *, key: str = "", timeout_s: float = CALL_TIMEOUT_S
    ) -> Json:
        """Returns the answer of the process, which does once what is asked with the same `key`. Raises what it raises,
        and Unavailable when no answer comes.
        """
        call_id, waiting = fresh("call"), _Call()
        self._calls[call_id] = waiting
        try:
            with anyio.move_on_after(timeout_s):
                while not waiting.answered.is_set():
                    self.send("call", {"id": call_id, "key": key, "method": method, "body": body}, to=to)
                    with anyio.move_on_after(ASK_AGAIN_S):
                        await waiting.answered.wait()
        finally:
            del self._calls[call_id]
        if waiting.error is not None:
            raise read_error(waiting.error)
        if not waiting.answered.is_set():
            self.send("drop", {"id": call_id}, to=to)
            raise Unavailable(
                f"{to} does not answer.",
                code="fleet_silent",
                why="Another process of this fleet is away or overloaded. It may have done what was asked anyway.",
                fix="Look whether it was done before you try again; `denizen fleet status` shows which processes live.",
            )
        return waiting.value

    # --- hearing -----------------------------------------------------------------------------------------------------

    def hear(self, topic: str, hearer: Hear) -> None:
        """Calls `hearer` for each message of the topic from another process."""
        self._hearers.setdefault(topic, []).append(hearer)

    def answer(self, method: str, answerer: Answer) -> None:
        """Answers calls of that method with what `answerer` returns or raises."""
        self._answerers[method] = answerer

    # --- running -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Sends and hears until it is cancelled."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._keep_connected, "hearing", self._listen)
            group.start_soon(self._keep_connected, "sending", self._deliver)

    async def _keep_connected(self, what: str, use: Callable[[psycopg.AsyncConnection[Any]], Awaitable[None]]) -> None:
        is_told = False
        while True:
            try:
                connection = await psycopg.AsyncConnection[Any].connect(
                    self._url,
                    autocommit=True,
                    connect_timeout=CONNECT_TIMEOUT_S,
                    application_name="denizen-fleet",
                    keepalives_idle=5,
                    keepalives_interval=5,
                    keepalives_count=3,
                )
                try:
                    is_told = False
                    await use(connection)
                finally:
                    with anyio.CancelScope(shield=True):
                        await connection.close()
            except (psycopg.Error, OSError) as error:
                if not is_told:
                    is_told = True
                    _log.warning("the fleet's database is away, %s waits for it: %s", what, type(error).__name__)
                await anyio.sleep(RECONNECT_S)

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute(SQL("LISTEN {}").format(Identifier(CHANNEL)))
        self._parts.clear()
        self.connected.set()
        async for notification in connection.notifies():
            self._take(notification.payload)

    async def _deliver(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            news = self._news
            while self._outgoing:
                some = [self._outgoing[at] for at in range(min(AT_ONCE, len(self._outgoing)))]
                # One statement after another: notifications of a statement arrive in this order.
                await connection.execute("SELECT pg_notify(%s, part) FROM unnest(%s::text[]) AS part", [CHANNEL, some])
                for sent in some:
                    if self._outgoing and self._outgoing[0] is sent:
                        self._outgoing.popleft()
            await news.wait()

    def _take(self, payload: str) -> None:
        head, _, part = payload.partition("\n")
        fields = head.split(" ")
        if len(fields) != 3 or not (fields[1].isdigit() and fields[2].isdigit()):
            _log.warning("a message that is none came from the database")
            return
        key, number, of = fields[0], int(fields[1]), int(fields[2])
        parts = self._parts.setdefault(key, [])
        parts.append(part)
        if number != len(parts) - 1 or of > MAX_PARTS:  # its beginning was not heard
            del self._parts[key]
        elif number == of - 1:
            self._tell("".join(self._parts.pop(key)))
        elif len(self._parts) > MAX_OPEN:
            del self._parts[next(iter(self._parts))]

    def _tell(self, token: str) -> None:
        if token in self._heard:
            return
        self._heard.append(token)
        try:
            message = json.loads(self._fernet.decrypt(token, ttl=LIFE_S))
            if message["from"] != self.node and message["to"] in ("*", self.node):
                for hearer in self._hearers.get(message["topic"], ()):
                    hearer(message["from"], message["body"])
        except InvalidToken:
            _log.warning("a message of the fleet is old, or not of this fleet")
        except Exception:  # noqa: BLE001 - the boundary of a message: the next one is heard all the same
            _log.exception("a message of the fleet could not be taken")

    # --- calls -------------------------------------------------------------------------------------------------------

    def _take_call(self, sender: str, message: JsonObject) -> None:
        assert self._group is not None, "messages are heard while it runs"
        call_id = str(message["id"])
        key, asker = str(message.get("key") or call_id), (sender, call_id)
        if key in self._answered:
            self.send("answer", {"id": call_id, "value": self._answered[key]}, to=sender)
        elif key in self._under_way:
            self._under_way[key].askers.add(asker)
        else:
            self._under_way[key] = _Action({asker})
            self._group.start_soon(self._answer, key, message)

    def _take_drop(self, sender: str, message: JsonObject) -> None:
        """Gives up what nobody waits for any more, also when it comes so late that it has hardly begun."""
        asker = (sender, str(message["id"]))
        for action in self._under_way.values():
            action.askers.discard(asker)
            if not action.askers:
                action.scope.cancel()

    async def _answer(self, key: str, message: JsonObject) -> None:
        method, body, action = str(message["method"]), message["body"], self._under_way[key]
        answer: JsonObject = {}
        try:
            with action.scope:
                answerer = self._answerers.get(method)
                if answerer is None or not isinstance(body, dict):
                    raise Unavailable(f"{self.node} does not know {method}.", code="fleet_unknown")
                answer = {"value": await answerer(body)}
                # What has no key may be done again; its answers would push out those of actions that must not.
                if message.get("key") and len(json.dumps(answer)) <= KEPT_BYTES:
                    self._answered[key] = answer["value"]
                    if len(self._answered) > KEPT_ANSWERS:
                        del self._answered[next(iter(self._answered))]
        except DenizenError as error:
            answer = {"error": write_error(error)}
        except Exception:  # noqa: BLE001 - the boundary of a call: its caller must not wait for nothing
            _log.exception("a call of the fleet failed", extra={"method": method, "askers": sorted(action.askers)})
            answer = {"error": write_error(DenizenError("Something inside Denizen went wrong.", code="internal"))}
        finally:
            del self._under_way[key]
        if answer:
            for sender, call_id in action.askers:
                self.send("answer", {"id": call_id, **answer}, to=sender)

    def _take_answer(self, _sender: str, message: JsonObject) -> None:
        waiting = self._calls.get(str(message["id"]))
        if waiting is not None:
            error = message.get("error")
            waiting.error = error if isinstance(error, dict) else None
            waiting.value = message.get("value")
            waiting.answered.set()


class _HeardMessages:
    """The messages that were heard lately, by their beginnings, which are random."""

    def __init__(self) -> None:
        self._order: deque[str] = deque()
        self._known: set[str] = set()

    def __contains__(self, token: str) -> bool:
        return token[:60] in self._known

    def append(self, token: str) -> None:
        self._order.append(token[:60])
        self._known.add(token[:60])
        if len(self._order) > REMEMBERED:
            self._known.discard(self._order.popleft())


class _Action:
    """An action that one or several calls have asked for: `askers` are who sent them, and their ids."""

    def __init__(self, askers: set[tuple[str, str]]) -> None:
        self.askers = askers
        self.scope = anyio.CancelScope()


class _Call:
    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.value: Json = None
        self.error: JsonObject | None = None
