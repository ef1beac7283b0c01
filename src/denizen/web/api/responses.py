"""`/v1/responses`: turns as responses. `client_turns` tells of the headers.

A response that names a previous one goes on from it: the conversation up to that turn is the history of this one, with
what the agent did then. Several responses may go on from the same one.
"""

from __future__ import annotations

from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.clock import Clock
from denizen.domain.errors import InvalidInput, NotFound
from denizen.domain.events import TextAdded, TurnFinished, TurnStarted
from denizen.domain.prompt import PromptMessage
from denizen.engine.inspection.queries import Queries
from denizen.web.api.client_messages import CALL_ID, PICTURE
from denizen.web.api.client_turns import (
    CLIENT_GONE,
    SESSION_HEADER,
    TURN_HEADERS,
    ClientTurn,
    ClientTurns,
    describe_event,
    require_text,
)
from denizen.web.api.completion_format import PARAGRAPH, StreamedText
from denizen.web.api.model_options import (
    FORM_SCHEMA,
    FUNCTION,
    MAX_TOKENS,
    NAME,
    SAMPLING,
    describe_choice,
    describe_fields,
)
from denizen.web.api.response_format import NEUTRAL_FIELDS, ResponseRequest, ResponseWriter, parse_response
from denizen.web.http.auth import get_principal
from denizen.web.http.errors import openai_error
from denizen.web.http.event_stream import Chunks, SseComment
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
from denizen.web.http.request import read_object
from denizen.web.http.routing import Access

_PART: Schema = {
    "anyOf": [
        object_schema("type", "text", type={"enum": ["input_text", "output_text"]}, text=TEXT),
        object_schema("type", "image_url", type={"const": "input_image"}, image_url=PICTURE),
    ]
}
_CONTENT: Schema = {"anyOf": [{**TEXT, "minLength": 1}, {**list_schema(_PART), "minItems": 1}]}
_ITEM: Schema = {
    "anyOf": [
        object_schema(
            *("role", "content"),
            type={"const": "message"},
            role={"enum": ["system", "developer", "user", "assistant"]},
            content=_CONTENT,
        ),
        object_schema(
            *("type", "call_id", "name", "arguments"),
            type={"const": "function_call"},
            call_id=CALL_ID,
            name=NAME,
            arguments=TEXT,
        ),
        object_schema(
            "type", "call_id", "output", type={"const": "function_call_output"}, call_id=CALL_ID, output=_CONTENT
        ),
    ]
}
_FUNCTION = {"type": {"const": "function"}}
_REQUEST: Schema = {
    **object_schema(
        "input",
        model={"type": "string", "description": "An agent's name; empty, or `default`, for the default one."},
        input={"anyOf": [TEXT, {**list_schema(_ITEM), "minItems": 1}]},
        instructions=TEXT,
        previous_response_id={"type": "string", "description": "A stored response of the caller's to go on from."},
        stream=FLAG,
        stream_options=object_schema(include_obfuscation=FLAG),
        max_output_tokens={"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
        **SAMPLING,
        text=object_schema(
            format={
                "anyOf": [
                    object_schema("type", type={"enum": ["text", "json_object"]}),
                    object_schema(
                        *("type", "name", "schema"), type={"const": "json_schema"}, name=NAME, schema=FORM_SCHEMA
                    ),
                ]
            },
            verbosity={"enum": [None, "medium"]},
        ),
        tools=list_schema(object_schema("type", "name", **_FUNCTION, **FUNCTION)),
        tool_choice=describe_choice(object_schema("type", "name", **_FUNCTION, name=NAME)),
        parallel_tool_calls=FLAG,
        metadata=ANY_OBJECT,
        user=TEXT,
        **(describe_fields(NEUTRAL_FIELDS) | {"store": FLAG}),
    ),
    "additionalProperties": False,
}
_RESPONSE = object_schema(
    *("id", "object", "created_at", "model", "status", "output", "usage"),
    id=TEXT,
    object={"const": "response"},
    created_at=NUMBER,
    model=TEXT,
    status={"enum": ["completed", "incomplete"]},
    output=list_schema(object_schema("id", "type", id=TEXT, type={"enum": ["message", "function_call"]})),
    usage=ANY_OBJECT,
    skipped=FLAG,
)


class ResponseRoutes:
    """The route of responses."""

    def __init__(self, turns: ClientTurns, queries: Queries, clock: Clock) -> None:
        self._turns = turns
        self._queries = queries
        self._clock = clock

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/v1/responses",
                self.respond,
                Access.MEMBER,
                Operation(
                    "A response: a turn of an agent",
                    _REQUEST,
                    _RESPONSE,
                    stream="With `stream`, events as OpenAI sends them.",
                    headers=TURN_HEADERS[1:],
                ),
            )
        ]

    async def respond(self, request: Request) -> Response:
        wanted = parse_response(await read_object(request))
        if request.headers.get(SESSION_HEADER):
            raise InvalidInput(
                "Responses have no named sessions.",
                code="session_unsupported",
                fix="Go on with `previous_response_id`, or use /v1/chat/completions.",
            )
        turn = await self._turns.plan(request, wanted.asked, await self._load_previous(request, wanted))
        reply = ResponseWriter(turn.id, turn.agent.name, wanted, created=int(self._clock.now().timestamp()))
        if wanted.asked.stream:
            return self._turns.stream(
                turn,
                self._stream(turn, reply),
                lambda error: reply.failure(openai_error(describe_problem(error))["error"]),
            )
        finished = await self._turns.wait(request, turn)
        if finished is None:
            return Response(status_code=CLIENT_GONE)
        reason = await self._turns.find_finish_reason(finished, turn)
        return JSONResponse(reply.response(finished, reason), headers=turn.headers)

    async def _load_previous(self, request: Request, wanted: ResponseRequest) -> list[PromptMessage]:
        if wanted.previous is None:
            return []
        try:
            return await self._queries.load_exchange(wanted.previous, get_principal(request))
        except NotFound as error:
            raise NotFound(
                "There is no such previous response.",
                code="previous_response_not_found",
                why="it is not yours, or was deleted",
                fix="Send the conversation in `input`.",
            ) from error

    async def _stream(self, turn: ClientTurn, reply: ResponseWriter) -> Chunks:
        sent, has_begun = StreamedText(), False
        async with aclosing(self._turns.watch(turn.request)) as events:
            async for event in events:
                text = ""
                if comment := describe_event(event):
                    yield SseComment(comment)
                match event:
                    case TurnStarted():
                        sent.begin()
                    case TextAdded():
                        text = sent.add(event)
                    case TurnFinished():
                        text = sent.finish(require_text(event)) + (PARAGRAPH + event.cards if event.cards else "")
                    case _:
                        pass
                if not has_begun and (text or isinstance(event, TurnFinished)):
                    has_begun = True
                    yield reply.opening()
                if text:
                    yield reply.text(text)
                if isinstance(event, TurnFinished):
                    yield reply.ending(event, await self._turns.find_finish_reason(event, turn))
