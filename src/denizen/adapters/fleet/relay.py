"""Live events of turns between processes: implements `denizen.ports.fleet.TurnRelay`.

Only what somebody watches is sent. A watcher says so again every few seconds, so that a process that began later knows,
and one that died is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import anyio

from denizen.adapters.fleet.bus import FleetBus
from denizen.adapters.fleet.wire import from_json, read_error, to_json, write_error
from denizen.domain.errors import DenizenError
from denizen.domain.events import TurnEvent
from denizen.domain.fleet import FleetRole
from denizen.domain.ids import AgentName, TurnId
from denizen.domain.json import JsonObject

SAY_AGAIN_S = 10.0
FORGET_AFTER_S = 35.0

Hear = Callable[[TurnId, TurnEvent | DenizenError], None]


class FleetRelay:
    """`on_sign`, `on_cancel` and `on_wake` are told what other processes send; set them before `run`."""

    def __init__(self, bus: FleetBus, role: FleetRole) -> None:
        self._bus = bus
        self._role = role
        self._mine: set[TurnId] = set()
        """Watched here."""
        self._theirs: dict[TurnId, dict[str, float]] = {}
        """Watched elsewhere: by whom, and when that was said."""
        self.on_sign: Hear = lambda _turn, _sign: None
        self.on_cancel: Callable[[TurnId], object] = lambda _turn: None
        self.on_wake: Callable[[str, AgentName], object] = lambda _platform, _account: None
        bus.hear("watch", self._take_watch)
        bus.hear("sign", self._take_sign)
        bus.hear("cancel", lambda _sender, body: self.on_cancel(TurnId(str(body["turn"]))))
        bus.hear("wake", lambda _sender, body: self.on_wake(str(body["platform"]), AgentName(str(body["account"]))))

    @property
    def runs_turns(self) -> bool:
        return self._role.runs_turns

    def watch(self, turn_id: TurnId, *, on: bool) -> None:
        (self._mine.add if on else self._mine.discard)(turn_id)
        self._bus.send("watch", {"turns": [turn_id], "on": on})

    def is_watched(self, turn_id: TurnId) -> bool:
        return turn_id in self._theirs

    def publish(self, turn_id: TurnId, sign: TurnEvent | DenizenError) -> None:
        if turn_id in self._theirs:
            is_error = isinstance(sign, DenizenError)
            told: JsonObject = {"error": write_error(sign)} if is_error else {"event": to_json(sign)}
            self._bus.send("sign", {"turn": turn_id, **told})

    def cancel(self, turn_id: TurnId) -> None:
        self._bus.send("cancel", {"turn": turn_id})

    def wake_outbox(self, platform: str, account: AgentName) -> None:
        self._bus.send("wake", {"platform": platform, "account": account})

    async def run(self) -> None:
        """Says again what is watched here, until it is cancelled."""
        while True:
            if self._mine:
                self._bus.send("watch", {"turns": sorted(self._mine), "on": True})
            await anyio.sleep(SAY_AGAIN_S)
            oldest_s = anyio.current_time() - FORGET_AFTER_S
            for turn_id, watchers in list(self._theirs.items()):
                live = {node: said_s for node, said_s in watchers.items() if said_s > oldest_s}
                if live:
                    self._theirs[turn_id] = live
                else:
                    del self._theirs[turn_id]

    def _take_watch(self, sender: str, body: JsonObject) -> None:
        for each in cast("list[str]", body["turns"]):
            turn_id = TurnId(each)
            if body["on"]:
                self._theirs.setdefault(turn_id, {})[sender] = anyio.current_time()
            else:
                self._theirs.get(turn_id, {}).pop(sender, None)
                if not self._theirs.get(turn_id):
                    self._theirs.pop(turn_id, None)

    def _take_sign(self, _sender: str, body: JsonObject) -> None:
        turn_id, row = TurnId(str(body["turn"])), cast("dict[str, Any]", body)
        if turn_id in self._mine:
            sign = read_error(row["error"]) if "error" in row else from_json(TurnEvent, row["event"])
            self.on_sign(turn_id, sign)
