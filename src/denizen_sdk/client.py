"""A thin asynchronous client of the `/api` routes. For OpenAI-compatible use, point any OpenAI client at `/v1`.

    async with DenizenClient("http://127.0.0.1:8650", api_key="...") as denizen:
        answer = await denizen.ask("What did we decide yesterday?")
        async for event in denizen.chat(ChatRequest("And why?")):
            ...

Inherits the calls of each topic from the topic's module. Works on asyncio and trio.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Self

import httpx2

from denizen_sdk.agents import AgentCalls
from denizen_sdk.background import BackgroundTaskCalls
from denizen_sdk.chats import ChatCalls
from denizen_sdk.commands import CommandCalls
from denizen_sdk.configuration import ConfigurationCalls
from denizen_sdk.connection import ServerConnection
from denizen_sdk.events import EventCalls
from denizen_sdk.gaps import GapCalls
from denizen_sdk.inspection import InspectionCalls
from denizen_sdk.knowledge import KnowledgeCalls
from denizen_sdk.projects import ProjectCalls
from denizen_sdk.questions import QuestionCalls
from denizen_sdk.schedules import ScheduleCalls
from denizen_sdk.shell import ShellCalls
from denizen_sdk.store import StoreCalls
from denizen_sdk.turns import TurnCalls
from denizen_sdk.usage import UsageCalls
from denizen_sdk.users import AccountCalls
from denizen_sdk.workflows import WorkflowCalls


class DenizenClient(
    TurnCalls,
    ChatCalls,
    CommandCalls,
    AgentCalls,
    BackgroundTaskCalls,
    ShellCalls,
    KnowledgeCalls,
    GapCalls,
    ProjectCalls,
    QuestionCalls,
    EventCalls,
    UsageCalls,
    ConfigurationCalls,
    StoreCalls,
    AccountCalls,
    InspectionCalls,
    ScheduleCalls,
    WorkflowCalls,
):
    """One server and one key. Close it, or use it as an asynchronous context manager."""

    def __init__(  # noqa: PLR0913 - keywords, each of which a reader of a program understands
        self,
        base_url: str,
        api_key: str = "",
        *,
        session_id: str = "",
        source: str = "sdk",
        source_id: str = "",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 30.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """`session_id` is the session of the shell to go on with. `source` (1 to 50 characters) and `source_id` say in
        whose name usage is reported. `timeout_s` bounds connecting and waiting for plain answers (those that
        take the server long are waited for longer) and, because the server sends signs of life, silence on a stream.
        Raises ValueError without a base URL.
        """
        if not base_url:
            raise ValueError("base_url is missing. Give the server's address, such as http://127.0.0.1:8650.")
        credentials = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._connection = ServerConnection(
            httpx2.AsyncClient(
                base_url=base_url, headers={**credentials, **(headers or {})}, timeout=timeout_s, transport=transport
            ),
            timeout_s,
        )
        self.session_id = session_id
        self.source, self.source_id = source, source_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._connection.aclose()
