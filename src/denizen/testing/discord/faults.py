"""Faults that a test can cause, on REST and on the gateway.

    discord.faults.fail("POST", "/messages", status=500)              the next one fails and is not applied
    discord.faults.drop("POST", "/messages", when="after")            applied, but the answer is lost
    held = discord.faults.hold("POST", "/messages"); await held.wait_reached(); ...; held.release()
    discord.faults.close_gateway(4000); discord.faults.cut_gateway(); discord.faults.invalidate_sessions()

Routes are regular expressions, searched in the path (`/channels/123/messages`) and in the template of the route
(`/channels/{channel_id}/messages`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

import anyio

from denizen.testing.discord.gateway.connection import GatewayConnection
from denizen.testing.discord.gateway.sessions import GatewayFaults, GatewaySession, GatewaySessions
from denizen.testing.discord.rest.request_log import FaultTime, RequestFault
from denizen.testing.discord.state.people import SimApplication


class DiscordFaults:
    """The faults of one server. Those of the gateway take an application, or mean all of them."""

    def __init__(
        self, faults: GatewayFaults, sessions: GatewaySessions, lines: Callable[[], list[GatewayConnection]]
    ) -> None:
        self.rest: list[RequestFault] = []
        self._faults = faults
        self._sessions = sessions
        self._lines = lines

    def fail(
        self, method: str = "", route: str = "", *, status: int = 500, times: int = 1, when: FaultTime = "before"
    ) -> RequestFault:
        """Answers the next requests with this status; `when` says whether they are applied all the same."""
        return self._add(RequestFault(method.upper(), re.compile(route), times, when, status))

    def drop(self, method: str = "", route: str = "", *, times: int = 1, when: FaultTime = "before") -> RequestFault:
        """Breaks the connection of the next requests without an answer."""
        return self._add(RequestFault(method.upper(), re.compile(route), times, when, drop=True))

    def hold(
        self, method: str = "", route: str = "", *, times: int = 1_000_000, when: FaultTime = "before"
    ) -> RequestFault:
        """Keeps requests waiting until `release`."""
        return self._add(RequestFault(method.upper(), re.compile(route), times, when, gate=anyio.Event()))

    def delay(self, delay_s: float, method: str = "", route: str = "", *, times: int = 1) -> RequestFault:
        """Delays the answers to the next requests."""
        return self._add(RequestFault(method.upper(), re.compile(route), times, "before", delay_s=delay_s))

    def clear(self) -> None:
        """Ends all faults and releases whatever is held."""
        for fault in self.rest:
            fault.release()
        self.rest.clear()
        self._faults.refusals = 0
        self._faults.duplicates.clear()
        self._faults.acks = True
        self.thaw_gateway()
        self.release_events()

    def close_gateway(self, code: int = 4000, application: SimApplication | None = None) -> None:
        """Closes the connections with this code. The sessions can be resumed."""
        for line in self._list_connections(application):
            line.close(code)

    def cut_gateway(self, application: SimApplication | None = None) -> None:
        """Breaks the connections without a close frame, as a network does."""
        for line in self._list_connections(application):
            line.cut()

    def refuse_gateway(self, times: int = 1) -> None:
        """Refuses the next connections (503)."""
        self._faults.refusals += times

    def ask_reconnect(self, application: SimApplication | None = None) -> None:
        """Asks clients to reconnect (op 7)."""
        for line in self._list_connections(application):
            line.reconnect()

    def invalidate_sessions(self, application: SimApplication | None = None, *, resumable: bool = False) -> None:
        """Invalidates sessions (op 9). Disconnected ones are forgotten too, unless `resumable`."""
        for line in self._list_connections(application):
            line.invalidate(resumable=resumable)
        for session in self._sessions.of(application):
            if not resumable:
                self._sessions.forget(session)

    def duplicate_events(self, name: str | None = None, times: int = 1) -> None:
        """Sends the next events of this name (or any) twice, with the same number."""
        self._faults.duplicates[name] = self._faults.duplicates.get(name, 0) + times

    def ignore_heartbeats(self) -> None:
        """Acknowledges no heartbeat until `clear`."""
        self._faults.acks = False

    def freeze_gateway(self) -> None:
        """Makes connections zombies until `thaw_gateway`: they stay up, but nothing arrives and nothing is answered."""
        self._faults.frozen = True

    def thaw_gateway(self) -> None:
        self._faults.frozen = False
        for line in self._lines():
            line.stir()

    def hold_events(self) -> None:
        """Holds events back until `release_events`; heartbeats go on."""
        self._faults.holding = True

    def release_events(self) -> None:
        self._faults.holding = False
        for session in self._sessions.all:
            session.release()

    @contextmanager
    def held_events(self) -> Generator[None, None, None]:
        """Holds events back during the block."""
        self.hold_events()
        try:
            yield
        finally:
            self.release_events()

    def _add(self, fault: RequestFault) -> RequestFault:
        self.rest.append(fault)
        return fault

    def _list_connections(self, application: SimApplication | None) -> list[GatewayConnection]:
        def concerned(session: GatewaySession | None) -> bool:
            return application is None or (session is not None and session.application is application)

        return [line for line in self._lines() if concerned(line.session)]
