"""The running server as the terminal of an event loop: whatever waits for it waits in a thread."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from anyio import to_thread

from denizen.app.terminal_messages import AnsweringAgent, MoveReport, TerminalMessage
from denizen.cli.terminal_client import TerminalClient
from denizen.domain.json import Json
from denizen_sdk.agents import AgentListing, ModelListing, ToolListing
from denizen_sdk.records import from_json
from denizen_sdk.turns import ChatEvent


class ServerTerminal:
    """The methods of `TerminalService`, which the server carries out."""

    def __init__(self, client: TerminalClient) -> None:
        self._client = client

    def stream(self, message: TerminalMessage) -> AsyncGenerator[ChatEvent]:
        stream = self._client.stream(message)
        return follow(iter(stream), stream.close)

    def cancel(self, message: TerminalMessage) -> None:
        self._client.cancel(message)

    async def decide(self, approval_id: str, choice: str, note: str) -> None:
        await self._request("decide", approval_id=approval_id, choice=choice, note=note)

    async def list_agents(self) -> Sequence[AgentListing]:
        return [from_json(AgentListing, row) for row in await self._request("list_agents")]

    async def get_agent(self, name: str) -> AgentListing:
        return from_json(AgentListing, await self._request("get_agent", name=name))

    async def find_answering(self, session: str, agent: str) -> AnsweringAgent:
        return from_json(AnsweringAgent, await self._request("find_answering", session=session, agent=agent))

    async def hand_over(self, session: str, own: str, agent: str, minutes: int, messages: int) -> str:
        values = {"session": session, "own": own, "agent": agent, "minutes": minutes, "messages": messages}
        return await self._request("hand_over", **values)

    async def end_handover(self, session: str) -> str:
        return await self._request("end_handover", session=session)

    async def list_models(self, named: str = "") -> Sequence[ModelListing]:
        return [from_json(ModelListing, row) for row in await self._request("list_models", named=named)]

    async def list_tools(self, agent: str) -> Sequence[ToolListing]:
        return [from_json(ToolListing, row) for row in await self._request("list_tools", agent=agent)]

    async def list_context(self, agent: str, session: str, model: str) -> Mapping[str, int]:
        return await self._request("list_context", agent=agent, session=session, model=model)

    async def run_migrate(self, action: str) -> MoveReport:
        return from_json(MoveReport, await self._request("run_migrate", action=action))

    async def report_move(self) -> MoveReport:
        return from_json(MoveReport, await self._request("report_move"))

    async def run_schedules(self, typed: str, agent: str) -> str:
        return await self._request("run_schedules", typed=typed, agent=agent)

    async def start_workflow(self, name: str, given: Mapping[str, Json], trigger: str) -> str:
        return await self._request("start_workflow", name=name, given=given, trigger=trigger)

    async def rerun_workflow(self, run: str, from_node: str) -> str:
        return await self._request("rerun_workflow", run=run, from_node=from_node)

    async def run_observer(self, action: str) -> str:
        return await self._request("run_observer", action=action)

    async def _request(self, name: str, /, **values: object) -> Any:  # noqa: ANN401 - any JSON value
        return await to_thread.run_sync(partial(self._client.request, name, **values))


async def follow(events: Iterator[ChatEvent], close: Callable[[], object]) -> AsyncGenerator[ChatEvent]:
    """Yields the events of a turn in the server. `close` lets go of the thread that waits for one."""
    try:
        while (event := await to_thread.run_sync(next, events, None, abandon_on_cancel=True)) is not None:
            yield event
    finally:
        close()
