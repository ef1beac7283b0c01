"""A thin asynchronous client of the `/api` routes. For OpenAI-compatible use, point any OpenAI client at `/v1`.

    async with DenizenClient("http://127.0.0.1:8642", api_key="...") as denizen:
        answer = await denizen.ask("What did we decide yesterday?")
        async for event in denizen.chat(ChatRequest("And why?")):
            ...

Works on asyncio and trio.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, cast
from urllib.parse import quote

import httpx2

from denizen_sdk.connection import Connection, check
from denizen_sdk.errors import ApiError, NetworkError
from denizen_sdk.knowledge import SnapshotStarted, SourceInfo, sources_from
from denizen_sdk.shell import CommandOutput, answer_from
from denizen_sdk.usage import UsageRecorded, tokens_of
from denizen_sdk.wire import (
    AgentInfo,
    ApprovalInfo,
    Cancelled,
    ChatEvent,
    ChatRequest,
    Health,
    MessageInfo,
    ModelInfo,
    Record,
    SyncStarted,
    ToolInfo,
    TurnFailed,
    TurnFinished,
    TurnInfo,
    Unknown,
    decode_event,
    from_json,
)

TURN_HEADER = "X-Denizen-Turn"


class DenizenClient:
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
        whose name usage is reported. `timeout_s` bounds connecting and waiting for plain answers and, because the
        server sends signs of life, silence on a stream. Raises ValueError without a base URL.
        """
        if not base_url:
            raise ValueError("base_url is missing. Give the server's address, such as http://127.0.0.1:8642.")
        credentials = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._connection = Connection(
            httpx2.AsyncClient(
                base_url=base_url, headers={**credentials, **(headers or {})}, timeout=timeout_s, transport=transport
            )
        )
        self.session_id = session_id
        """The shell's session of the last answer; the next call goes on in it. It may be set."""
        self.source, self.source_id = source, source_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._connection.aclose()

    async def ask(self, request: ChatRequest | str, *, idempotency_key: str = "") -> TurnFinished:
        """Sends a message and waits for the answer.

        Raises ApiError (the turn failed, or was refused) and NetworkError.
        """
        async with aclosing(self.chat(request, idempotency_key=idempotency_key)) as events:
            async for event in events:
                if isinstance(event, TurnFinished):
                    return event
                if isinstance(event, TurnFailed):
                    raise ApiError(event.error, turn_id=event.turn_id)
        raise AssertionError("a chat that does not raise ends with one of the two")

    async def chat(
        self, request: ChatRequest | str, *, idempotency_key: str = ""
    ) -> AsyncGenerator[ChatEvent | Unknown]:
        """Sends a message and yields what happens; the last event is `TurnFinished` or `TurnFailed`.

        The same `idempotency_key` again gives the same turn. Raises ApiError when the message was not taken, and
        NetworkError, which names the turn when the connection broke while it ran: `get_turn` tells how it ended.
        """
        body = ChatRequest(request) if isinstance(request, str) else request
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        turn_id = ""
        try:
            async with self._connection.http.sse(
                "/api/chat", method="POST", json=_body(body), headers=headers
            ) as source:
                await check(source.response)
                turn_id = source.response.headers.get(TURN_HEADER, "")
                async for sent in source:
                    row: Any = sent.json()
                    event = decode_event(row)
                    yield event
                    if isinstance(event, TurnFinished | TurnFailed):
                        return
        except httpx2.TransportError as error:
            raise NetworkError(f"No connection to the server: {error}", turn_id=turn_id) from error
        raise NetworkError("The server ended the stream before the turn had ended.", turn_id=turn_id)

    async def cancel(self, turn_id: str) -> bool:
        """Stops a turn; False when it had ended already. Raises ApiError, NetworkError."""
        row = await self._connection.request("POST", f"/api/turns/{quote(turn_id)}/cancel")
        return from_json(Cancelled, row).cancelled

    async def list_approvals(self, *, status: str = "") -> list[ApprovalInfo]:
        """Calls that wait for people, or waited, newest first: own ones and those that the caller may decide. Raises
        ApiError, NetworkError.
        """
        return await self._list(ApprovalInfo, "/api/approvals", status=status)

    async def approve(self, approval_id: str, *, for_an_hour: bool = False) -> ApprovalInfo:
        """Lets the call run: once, or with all others of that tool here for an hour. Raises ApiError (403 for somebody
        who may not decide, 409 when it is too late), NetworkError.
        """
        return await self._decide(approval_id, {"decision": "approve", "scope": "hour" if for_an_hour else "once"})

    async def deny(self, approval_id: str, reason: str = "") -> ApprovalInfo:
        """The agent is told the reason. Raises as `approve` does."""
        return await self._decide(approval_id, {"decision": "deny", "reason": reason})

    async def get_turn(self, turn_id: str) -> TurnInfo:
        """Raises ApiError (404 for a turn of somebody else), NetworkError."""
        return from_json(TurnInfo, await self._connection.request("GET", f"/api/turns/{quote(turn_id)}"))

    async def list_messages(self, session: str = "default", *, agent: str = "") -> list[MessageInfo]:
        """The history of an own session, oldest first. Raises ApiError, NetworkError."""
        path = f"/api/sessions/{quote(session, safe='')}/messages"
        return await self._list(MessageInfo, path, agent=agent)

    async def list_agents(self) -> list[AgentInfo]:
        """The default agent first. Raises ApiError, NetworkError."""
        return await self._list(AgentInfo, "/api/agents")

    async def list_models(self) -> list[ModelInfo]:
        """Raises ApiError, NetworkError."""
        return await self._list(ModelInfo, "/api/models")

    async def list_tools(self, *, agent: str = "") -> list[ToolInfo]:
        """All tools, or those of an agent. Raises ApiError, NetworkError."""
        return await self._list(ToolInfo, "/api/tools", agent=agent)

    async def sync(self, sources: Sequence[str] = (), *, reset: bool = False, push: bool = True) -> SyncStarted:
        """Starts reading all sources of knowledge, or these, and does not wait. With `reset` everything is fetched
        anew; without `push` the remote for snapshots gets nothing. Raises ApiError (403 but for owners and admins),
        NetworkError.
        """
        body = {"sources": list(sources), "reset": reset, "push": push}
        return from_json(SyncStarted, await self._connection.request("POST", "/api/sync", body=body))

    async def sync_source(self, source: str) -> SyncStarted:
        """Starts reading one source. Raises as `sync` does, and ApiError (404) for a source that is not there."""
        return from_json(SyncStarted, await self._connection.request("POST", f"/api/sync/{quote(source, safe='')}"))

    async def list_sources(self) -> list[SourceInfo]:
        """The sources of knowledge. Raises ApiError, NetworkError."""
        return sources_from(await self._connection.request("GET", "/api/sources"))

    async def create_snapshot(self) -> SnapshotStarted:
        """Starts making a snapshot of what is known, and does not wait. Raises ApiError (403 but for owners and
        admins), NetworkError.
        """
        return from_json(SnapshotStarted, await self._connection.request("POST", "/api/sandbox/snapshot"))

    async def get_agent_config(self) -> Mapping[str, Any]:
        """The settings of the assistant that are active. Raises ApiError, NetworkError."""
        return cast("Mapping[str, Any]", await self._connection.request("GET", "/api/agent-config/public"))

    async def bash(self, command: str) -> CommandOutput:
        """Runs one command in the read-only shell. Raises ApiError (400 for one that is not allowed, with what is),
        NetworkError.
        """
        [output] = await self._run({"command": command})
        return output

    async def bash_batch(self, commands: Sequence[str]) -> tuple[CommandOutput, ...]:
        """Runs 1 to 10 commands, each by itself. Raises as `bash` does when one of them is not allowed."""
        return await self._run({"commands": [*commands]})

    async def report_usage(
        self,
        finished: object,
        *,
        model: str = "",
        duration_ms: int = 0,
        metadata: Mapping[str, Any] | None = None,
        idempotency_key: str = "",
    ) -> UsageRecorded:
        """Tells the server what a run elsewhere used: its result or its usage (`usage.tokens_of`). The same
        `idempotency_key` again is one report. Raises TypeError where there is no usage in it, ApiError, NetworkError.
        """
        tokens = tokens_of(finished)
        body = {
            "source": self.source, "sourceId": self.source_id, "model": model, "inputTokens": tokens.input_tokens,
            "outputTokens": tokens.output_tokens, "durationMs": duration_ms, "metadata": dict(metadata or {}),
        }  # fmt: skip
        row = await self._connection.request("POST", "/api/stats/usage", body=body, idempotency_key=idempotency_key)
        return from_json(UsageRecorded, row)

    async def health(self) -> Health:
        """Needs no key. Raises ApiError, NetworkError."""
        return from_json(Health, await self._connection.request("GET", "/health"))

    async def _run(self, body: Mapping[str, Any]) -> tuple[CommandOutput, ...]:
        session = {"sessionId": self.session_id} if self.session_id else {}
        answer = answer_from(await self._connection.request("POST", "/api/sandbox/shell", body={**body, **session}))
        self.session_id = answer.session_id
        return answer.results

    async def _list(self, kind: type[Record], path: str, **params: str) -> list[Record]:
        rows = await self._connection.request(
            "GET", path, params={name: value for name, value in params.items() if value}
        )
        return [from_json(kind, row) for row in rows]

    async def _decide(self, approval_id: str, body: Mapping[str, str]) -> ApprovalInfo:
        row = await self._connection.request("POST", f"/api/approvals/{quote(approval_id)}", body=body)
        return from_json(ApprovalInfo, row)


def _body(request: ChatRequest) -> dict[str, Any]:
    return {"message": request.message, "agent": request.agent, "session": request.session, "new": request.new}
