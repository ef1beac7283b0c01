"""`/v1`: the OpenAI-compatible API, with agents as models and turns as completions.

`POST /v1/chat/completions` takes three headers beyond OpenAI's. `X-Denizen-Session: NAME` (or `metadata.session`) uses
the server's own history of that name, so that only the last message counts. `Idempotency-Key` makes a repeated request
return the same turn's answer; another message under the same key is refused (409). A client that leaves stops its turn,
unless one of these two headers says that the turn matters beyond the connection. `X-Denizen-Approvals: wait` lets calls
that need approval wait for a decision, of which a stream tells; without it they are denied at once, since nobody can be
asked.
"""

from __future__ import annotations

from contextlib import aclosing

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.agent import Agent
from denizen.domain.approval import AskerReach, describe_deciders, describe_end
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.events import (
    ApprovalDecided,
    ApprovalRequested,
    Notice,
    ReasoningAdded,
    TextAdded,
    TurnEvent,
    TurnFinished,
    TurnStarted,
)
from denizen.domain.message import Author
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest, TurnStatus
from denizen.engine.inspection.queries import Queries
from denizen.engine.turn import TurnRunner
from denizen.web.api.chat import message_key, own_place, turn_id_for
from denizen.web.api.completion_format import (
    DONE,
    MAX_TOKENS,
    PARAGRAPH,
    CompletionRequest,
    CompletionWriter,
    StreamedText,
    encode_data,
    model_json,
    models_json,
    parse_completion,
)
from denizen.web.api.records import restore_error
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.errors import openai_error
from denizen.web.http.event_stream import Chunks, EventStream, SseComment, StreamOptions, wait_for_disconnect
from denizen.web.http.openapi import (
    ANY_OBJECT,
    FLAG,
    NUMBER,
    TEXT,
    ApiRoute,
    Operation,
    Schema,
    list_schema,
    object_schema,
)
from denizen.web.http.problems import describe_problem
from denizen.web.http.request import IDEMPOTENCY_HEADER, TURN_HEADER, read_object
from denizen.web.http.routing import Access

API = "api"
"""The platform of OpenAI-compatible requests."""

SESSION_HEADER = "x-denizen-session"
APPROVALS_HEADER = "x-denizen-approvals"
CLIENT_GONE = 499
"""The status for the log when the client left before its answer; nginx uses the same."""

_PART: Schema = {
    "anyOf": [
        object_schema("type", "text", type={"const": "text"}, text=TEXT),
        object_schema("type", "image_url", type={"const": "image_url"}, image_url=object_schema("url", url=TEXT)),
    ]
}
_MESSAGE = object_schema(
    "role",
    role={"enum": ["system", "developer", "user", "assistant"]},
    content={"anyOf": [TEXT, list_schema(_PART), {"type": "null"}]},
)
_REQUEST = object_schema(
    "messages",
    model={"type": "string", "description": "An agent's name; empty, or `default`, for the default one."},
    messages={**list_schema(_MESSAGE), "minItems": 1},
    stream=FLAG,
    stream_options=object_schema(include_usage=FLAG),
    max_completion_tokens={"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
    temperature={"type": "number", "minimum": 0, "maximum": 2},
    metadata=object_schema(session=TEXT),
    user=TEXT,
)
_MODEL = object_schema(
    "id", "object", "created", "owned_by", id=TEXT, object={"const": "model"}, created=NUMBER, owned_by=TEXT
)
_MODELS = object_schema("object", "data", object=TEXT, data=list_schema(_MODEL))
_CHOICE = object_schema(
    "index",
    "message",
    "finish_reason",
    index=NUMBER,
    message=object_schema("role", "content", role=TEXT),
    finish_reason=TEXT,
)
_COMPLETION = object_schema(
    *("id", "object", "created", "model", "choices", "usage"),
    id=TEXT,
    object=TEXT,
    created=NUMBER,
    model=TEXT,
    choices=list_schema(_CHOICE),
    usage=ANY_OBJECT,
)


class CompletionRoutes:
    """The routes under `/v1`."""

    def __init__(self, turns: TurnRunner, queries: Queries, clock: Clock, timing: WebTiming) -> None:
        self._turns = turns
        self._queries = queries
        self._clock = clock
        self._timing = timing
        self._started = int(clock.now().timestamp())

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET", "/v1/models", self.list_models, Access.MEMBER, Operation("The agents, as models", answer=_MODELS)
            ),
            ApiRoute(
                "GET",
                "/v1/models/{model:path}",
                self.get_model,
                Access.MEMBER,
                Operation("One agent, as a model", answer=_MODEL),
            ),
            ApiRoute(
                "POST",
                "/v1/chat/completions",
                self.complete,
                Access.MEMBER,
                Operation(
                    "A completion: a turn of an agent",
                    _REQUEST,
                    _COMPLETION,
                    stream="With `stream`, chunks as OpenAI sends them.",
                    headers=("X-Denizen-Session", "X-Denizen-Approvals", "Idempotency-Key"),
                ),
            ),
        ]

    async def list_models(self, _: Request) -> Response:
        names = [agent.name for agent in self._queries.list_agents()]
        return JSONResponse(models_json(names, self._started))

    async def get_model(self, request: Request) -> Response:
        agent = self._agent(request.path_params["model"])
        return JSONResponse(model_json(agent.name, self._started))

    async def complete(self, request: Request) -> Response:
        wanted = parse_completion(await read_object(request))
        agent = self._agent(wanted.model)
        turn_request, outlives_client = _build_turn_request(request, wanted, agent)
        reply = CompletionWriter(
            turn_id_for(turn_request),
            agent.name,
            created=int(self._clock.now().timestamp()),
            include_usage=wanted.include_usage,
        )
        headers = {TURN_HEADER: turn_id_for(turn_request)}
        if wanted.stream:
            options = StreamOptions(
                on_error=lambda error: encode_data(openai_error(describe_problem(error))) + DONE,
                on_gone=(lambda: None) if outlives_client else (lambda: self._cancel(turn_request)),
                start_after_s=self._timing.keep_alive_s,
                keep_alive_s=self._timing.keep_alive_s,
            )
            return EventStream(self._stream(turn_request, agent, reply), options, headers)
        finished = await self._wait_for_turn(request, turn_request, outlives_client=outlives_client)
        if finished is None:
            return Response(status_code=CLIENT_GONE)
        _require_text(finished)
        reason = await self._finish_reason(finished, turn_request, agent)
        return JSONResponse(reply.completion(finished, reason), headers=headers)

    def _agent(self, name: str) -> Agent:
        try:
            return self._queries.get_agent(name)
        except NotFound as error:
            raise NotFound(error.message, code="model_not_found", why=error.why, fix=error.fix) from error

    async def _wait_for_turn(
        self, request: Request, turn_request: TurnRequest, *, outlives_client: bool
    ) -> TurnFinished | None:
        """Returns the finished turn; None if the client left before."""
        finished: TurnFinished | None = None
        failure: DenizenError | None = None
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await wait_for_disconnect(request.receive)
                if not outlives_client:
                    self._cancel(turn_request)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                finished = await self._turns.ask(turn_request)
            except DenizenError as error:  # raised after the group, which would wrap it in a group of errors
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return finished

    async def _stream(self, turn_request: TurnRequest, agent: Agent, reply: CompletionWriter) -> Chunks:
        sent = StreamedText()
        async with aclosing(self._turns.stream(turn_request)) as events:
            async for event in events:
                text, comment = "", _describe_event(event)
                if comment:
                    yield SseComment(comment)
                match event:
                    case TurnStarted():
                        sent.begin()
                    case TextAdded():
                        text = sent.add(event)
                    case ApprovalRequested() if sent.is_followed:
                        yield reply.reasoning(f"{comment}\n")
                    case ReasoningAdded() if sent.is_followed:
                        yield reply.reasoning(event.text)
                    case TurnFinished():
                        text = sent.finish(_require_text(event))
                        if event.cards:
                            text += PARAGRAPH + event.cards
                    case _:
                        pass
                if text:
                    yield reply.text(text)
                if isinstance(event, TurnFinished):
                    late = b"" if sent.is_followed or not event.reasoning else reply.reasoning(event.reasoning)
                    yield late + reply.pictures(event.images)
                    yield reply.ending(await self._finish_reason(event, turn_request, agent), event.usage)

    async def _finish_reason(self, finished: TurnFinished, turn_request: TurnRequest, agent: Agent) -> str:
        """Returns `length` if the last step was cut off. Reads the record only if the tokens make that possible."""
        limit = turn_request.options.max_output_tokens or agent.limits.max_output_tokens
        if finished.usage.output_tokens < limit:
            return "stop"
        steps = (await self._queries.get_turn(finished.turn_id)).steps
        return "length" if steps and steps[-1].finish_reason == "length" else "stop"

    def _cancel(self, turn_request: TurnRequest) -> None:
        self._turns.cancel(turn_id_for(turn_request))


def _build_turn_request(request: Request, wanted: CompletionRequest, agent: Agent) -> tuple[TurnRequest, bool]:
    """Returns the message for the engine, and whether its turn goes on when the client leaves."""
    principal = get_principal(request)
    session = request.headers.get(SESSION_HEADER, "") or wanted.session
    idempotency_key = request.headers.get(IDEMPOTENCY_HEADER, "")
    key = message_key(principal, idempotency_key)
    turn_request = TurnRequest(
        agent=agent.name,
        place=own_place(API, principal, session) if session else Place(API, principal.key, key),
        sender=Sender(
            Author(principal.id, wanted.user or principal.name),
            principal,
            AskerReach.WAITS if request.headers.get(APPROVALS_HEADER) == "wait" else AskerReach.NOBODY,
        ),
        parts=wanted.parts,
        platform_id=key,
        keyed=bool(idempotency_key),
        session=SessionChoice(history=None if session else wanted.history),
        options=RequestOptions(
            instructions=wanted.instructions,
            # A client may ask for less than the operator allows, not for more.
            max_output_tokens=wanted.max_output_tokens
            and min(wanted.max_output_tokens, agent.limits.max_output_tokens),
            temperature=wanted.temperature,
        ),
    )
    return turn_request, bool(session or idempotency_key)


def _describe_event(event: TurnEvent) -> str:
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


def _require_text(finished: TurnFinished) -> str:
    """Returns the answer. Raises the turn's failure if it has none."""
    if finished.status is not TurnStatus.DONE:
        raise restore_error(finished.status, finished.failure)
    return finished.reply
