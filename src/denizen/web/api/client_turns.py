"""Turns of agents as `/v1` asks for them, whatever the wire format: opened, waited for, and stopped with their client.

Three headers go beyond OpenAI's. `X-Denizen-Session: NAME` uses the server's own history of that name, so that only the
last message counts. `Idempotency-Key` makes a repeated request return the same turn's answer; another message under the
same key is refused (409). A client that leaves stops its turn, unless one of these two headers says that the turn
matters beyond the connection. `X-Denizen-Approvals: wait` lets calls that need approval wait for a decision, of which a
stream tells; without it they are denied at once, since nobody can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import anyio
from starlette.requests import Request

from denizen.domain.agent import Agent
from denizen.domain.approval import AskerReach, describe_deciders, describe_end
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.events import ApprovalDecided, ApprovalRequested, Notice, TurnEvent, TurnFinished
from denizen.domain.ids import TurnId
from denizen.domain.message import Author, ToolResultPart, list_calls
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest
from denizen.engine.inspection.exchange import restore_ids
from denizen.engine.inspection.queries import Queries
from denizen.engine.turn import TurnRunner
from denizen.web.api.chat import message_key, own_place, turn_id_for
from denizen.web.api.completion_format import CompletionRequest
from denizen.web.api.records import restore_error
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions, wait_for_disconnect
from denizen.web.http.request import IDEMPOTENCY_HEADER, TURN_HEADER

API = "api"
"""The platform of OpenAI-compatible requests."""

SESSION_HEADER = "x-denizen-session"
APPROVALS_HEADER = "x-denizen-approvals"
TURN_HEADERS = ("X-Denizen-Session", "X-Denizen-Approvals", "Idempotency-Key")
CLIENT_GONE = 499
"""The status for the log when the client left before its answer; nginx uses the same."""


@record
class ClientTurn:
    """A turn that a client asks for. `outlives_client`: it goes on when the client leaves."""

    request: TurnRequest
    agent: Agent
    outlives_client: bool

    @property
    def id(self) -> TurnId:
        return turn_id_for(self.request)

    @property
    def headers(self) -> dict[str, str]:
        return {TURN_HEADER: self.id}


class ClientTurns:
    """The turns of one server."""

    def __init__(self, turns: TurnRunner, queries: Queries, timing: WebTiming) -> None:
        self._turns = turns
        self._queries = queries
        self._timing = timing
        self.watch = turns.stream

    def get_agent(self, name: str) -> Agent:
        """Raises NotFound, as OpenAI's servers say it of a model."""
        try:
            return self._queries.get_agent(name)
        except NotFound as error:
            raise NotFound(error.message, code="model_not_found", why=error.why, fix=error.fix) from error

    async def plan(
        self, request: Request, wanted: CompletionRequest, before: Sequence[PromptMessage] = ()
    ) -> ClientTurn:
        """Returns the turn for a request; `before` is what was said before its history."""
        principal, agent = get_principal(request), self.get_agent(wanted.model)
        session = request.headers.get(SESSION_HEADER, "") or wanted.session
        idempotency_key = request.headers.get(IDEMPOTENCY_HEADER, "")
        key = message_key(principal, idempotency_key)
        history = [*before, *await self._queries.restore_calls(wanted.history, principal)]
        names = {call.id: call.tool for message in history for call in list_calls(message.parts)}
        turn_request = TurnRequest(
            agent=agent.name,
            place=own_place(API, principal, session) if session else Place(API, principal.key, key),
            sender=Sender(
                Author(principal.id, wanted.user or principal.name),
                principal,
                AskerReach.WAITS if request.headers.get(APPROVALS_HEADER) == "wait" else AskerReach.NOBODY,
            ),
            parts=tuple(
                replace(part, tool=names.get(part.call_id, part.tool)) if isinstance(part, ToolResultPart) else part
                for part in restore_ids(wanted.parts)
            ),
            platform_id=key,
            keyed=bool(idempotency_key),
            session=SessionChoice(history=None if session else tuple(history)),
            options=RequestOptions(
                instructions=wanted.instructions,
                # A client may ask for less than the operator allows, not for more.
                max_output_tokens=wanted.max_output_tokens
                and min(wanted.max_output_tokens, agent.limits.max_output_tokens),
                demands=wanted.demands,
            ),
        )
        return ClientTurn(turn_request, agent, bool(session or idempotency_key))

    def stream(self, turn: ClientTurn, chunks: Chunks, on_error: Callable[[DenizenError], bytes]) -> EventStream:
        """Returns the answer to a request for a stream."""
        options = StreamOptions(
            on_error=on_error,
            on_gone=(lambda: None) if turn.outlives_client else (lambda: self._cancel(turn)),
            start_after_s=self._timing.keep_alive_s,
            keep_alive_s=self._timing.keep_alive_s,
        )
        return EventStream(chunks, options, turn.headers)

    async def wait(self, request: Request, turn: ClientTurn) -> TurnFinished | None:
        """Returns the finished turn; None if the client left before. Raises the turn's failure."""
        finished: TurnFinished | None = None
        failure: DenizenError | None = None
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await wait_for_disconnect(request.receive)
                if not turn.outlives_client:
                    self._cancel(turn)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                finished = await self._turns.ask(turn.request)
            except DenizenError as error:  # raised after the group, which would wrap it in a group of errors
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if finished is not None:
            require_text(finished)
        return finished

    async def find_finish_reason(self, finished: TurnFinished, turn: ClientTurn) -> str:
        """Returns `tool_calls`, `length` if the last step was cut off, or `stop`. Reads the record only if the tokens
        make it possible that it was.
        """
        if finished.calls:
            return "tool_calls"
        limit = turn.request.options.max_output_tokens or turn.agent.limits.max_output_tokens
        if finished.usage.output_tokens < limit:
            return "stop"
        steps = (await self._queries.get_turn(finished.turn_id)).steps
        return "length" if steps and steps[-1].finish_reason == "length" else "stop"

    def _cancel(self, turn: ClientTurn) -> None:
        self._turns.cancel(turn.id)


def describe_event(event: TurnEvent) -> str:
    """Says why nothing comes; empty for what a client sees anyway. OpenAI's format has nothing for it, but clients skip
    comments and fields that they do not know, and some show reasoning.
    """
    match event:
        case Notice():
            return event.text
        case ApprovalRequested():
            waits = event.approval
            tool, who = waits.request.tool, describe_deciders(waits.rule)
            return f"Waiting for approval of {tool} by {who}: `denizen approvals approve {waits.id}`."
        case ApprovalDecided():
            return f"{event.approval.request.tool}: {describe_end(event.approval)}"
        case _:
            return ""


def require_text(finished: TurnFinished) -> str:
    """Returns the answer; an empty one where a hook skipped the turn. Raises the turn's failure if it has none."""
    if finished.status.is_error:
        raise restore_error(finished.status, finished.failure)
    return finished.reply
