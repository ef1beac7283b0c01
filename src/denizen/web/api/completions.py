"""`/v1/models` and `/v1/chat/completions`: agents as models, turns as completions. `client_turns` tells of the headers.

What a program wants beside a conversation, such as Open WebUI a title for it, is answered by the agent's model alone.
"""

from __future__ import annotations

from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.events import ApprovalRequested, ReasoningAdded, TextAdded, TurnFinished, TurnStarted
from denizen.domain.ids import TurnId, fresh
from denizen.domain.message import Role, join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.turn import TurnStatus
from denizen.engine.budget.side_completion import TaskCompletion
from denizen.engine.inspection.queries import Queries
from denizen.web.api.client_messages import CALL_ID, PICTURE
from denizen.web.api.client_turns import (
    API,
    CLIENT_GONE,
    TURN_HEADERS,
    ClientTurn,
    ClientTurns,
    describe_event,
    require_text,
)
from denizen.web.api.completion_format import (
    DONE,
    NEUTRAL_FIELDS,
    PARAGRAPH,
    CompletionRequest,
    CompletionWriter,
    StreamedText,
    encode_data,
    model_json,
    models_json,
    parse_completion,
)
from denizen.web.api.model_options import (
    FORM_SCHEMA,
    FUNCTION,
    MAX_TOKENS,
    NAME,
    SAMPLING,
    SEED,
    STOP,
    describe_choice,
    describe_fields,
)
from denizen.web.http.auth import get_principal
from denizen.web.http.errors import openai_error
from denizen.web.http.event_stream import HEADERS, Chunks, SseComment
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
        object_schema("type", "text", type={"const": "text"}, text=TEXT),
        object_schema("type", "image_url", type={"const": "image_url"}, image_url=object_schema("url", url=PICTURE)),
    ]
}
_CONTENT: Schema = {"anyOf": [{**TEXT, "minLength": 1}, {**list_schema(_PART), "minItems": 1}]}
_CALL = object_schema(
    *("id", "type", "function"),
    id=CALL_ID,
    type={"const": "function"},
    function=object_schema("name", "arguments", name=NAME, arguments=TEXT),
)
_MESSAGE: Schema = {
    "anyOf": [
        object_schema("role", "content", role={"enum": ["system", "developer", "user"]}, content=_CONTENT),
        object_schema(
            "role",
            role={"const": "assistant"},
            content={"anyOf": [_CONTENT, {"type": "null"}]},
            tool_calls=list_schema(_CALL),
        ),
        object_schema(
            "role", "tool_call_id", "content", role={"const": "tool"}, tool_call_id=CALL_ID, content=_CONTENT
        ),
    ]
}
_FUNCTION = {"type": {"const": "function"}}
_REQUEST: Schema = {
    **object_schema(
        "messages",
        model={"type": "string", "description": "An agent's name; empty, or `default`, for the default one."},
        messages={**list_schema(_MESSAGE), "minItems": 1},
        stream=FLAG,
        stream_options=object_schema(include_usage=FLAG),
        max_completion_tokens={"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
        max_tokens={"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
        **SAMPLING,
        seed=SEED,
        stop=STOP,
        tools=list_schema(object_schema("type", "function", **_FUNCTION, function=object_schema("name", **FUNCTION))),
        tool_choice=describe_choice(
            object_schema("type", "function", **_FUNCTION, function=object_schema("name", name=NAME))
        ),
        parallel_tool_calls=FLAG,
        response_format={
            "anyOf": [
                object_schema("type", type={"enum": ["text", "json_object"]}),
                object_schema(
                    *("type", "json_schema"),
                    type={"const": "json_schema"},
                    json_schema=object_schema("name", "schema", name=NAME, schema=FORM_SCHEMA),
                ),
            ]
        },
        metadata=object_schema(session=TEXT, task=TEXT),
        task=TEXT,
        user=TEXT,
        **describe_fields(NEUTRAL_FIELDS),
    ),
    "additionalProperties": False,
}
_MODEL = object_schema(
    "id", "object", "created", "owned_by", id=TEXT, object={"const": "model"}, created=NUMBER, owned_by=TEXT
)
_MODELS = object_schema("object", "data", object=TEXT, data=list_schema(_MODEL))
_CHOICE = object_schema(
    "index",
    "message",
    "finish_reason",
    index=NUMBER,
    message=object_schema("role", "content", role=TEXT, tool_calls=list_schema(_CALL)),
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
    skipped=FLAG,
)


class CompletionRoutes:
    """The routes of models and their completions."""

    def __init__(self, turns: ClientTurns, queries: Queries, clock: Clock, tasks: TaskCompletion | None) -> None:
        self._turns = turns
        self._queries = queries
        self._clock = clock
        self._tasks = tasks
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
                    headers=TURN_HEADERS,
                ),
            ),
        ]

    async def list_models(self, _: Request) -> Response:
        names = [agent.name for agent in self._queries.list_agents()]
        return JSONResponse(models_json(names, self._started))

    async def get_model(self, request: Request) -> Response:
        agent = self._turns.get_agent(request.path_params["model"])
        return JSONResponse(model_json(agent.name, self._started))

    async def complete(self, request: Request) -> Response:
        wanted = parse_completion(await read_object(request))
        if wanted.is_task and self._tasks is not None:
            return await self._complete_task(request, wanted, self._tasks)
        turn = await self._turns.plan(request, wanted)
        reply = CompletionWriter(
            turn.id, turn.agent.name, created=int(self._clock.now().timestamp()), include_usage=wanted.include_usage
        )
        if wanted.stream:
            return self._turns.stream(
                turn, self._stream(turn, reply), lambda error: encode_data(openai_error(describe_problem(error))) + DONE
            )
        finished = await self._turns.wait(request, turn)
        if finished is None:
            return Response(status_code=CLIENT_GONE)
        reason = await self._turns.find_finish_reason(finished, turn)
        return JSONResponse(reply.completion(finished, reason), headers=turn.headers)

    async def _stream(self, turn: ClientTurn, reply: CompletionWriter) -> Chunks:
        sent = StreamedText()
        async with aclosing(self._turns.watch(turn.request)) as events:
            async for event in events:
                text, comment = "", describe_event(event)
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
                        text = sent.finish(require_text(event))
                        if event.cards:
                            text += PARAGRAPH + event.cards
                    case _:
                        pass
                if text:
                    yield reply.text(text)
                if isinstance(event, TurnFinished):
                    late = b"" if sent.is_followed or not event.reasoning else reply.reasoning(event.reasoning)
                    yield late + reply.pictures(event.images) + reply.calls(event.calls)
                    reason = await self._turns.find_finish_reason(event, turn)
                    yield reply.ending(reason, event.usage, event)

    async def _complete_task(self, request: Request, wanted: CompletionRequest, tasks: TaskCompletion) -> Response:
        principal, agent = get_principal(request), self._turns.get_agent(wanted.model)
        answer = await tasks(
            agent,
            principal,
            Place(API, principal.key, "tasks"),
            instructions=wanted.instructions,
            messages=(*wanted.history, PromptMessage(Role.USER, wanted.parts)),
            max_output_tokens=wanted.max_output_tokens,
            demands=wanted.demands,
        )
        reply = CompletionWriter(
            TurnId(fresh("task")),
            agent.name,
            created=int(self._clock.now().timestamp()),
            include_usage=wanted.include_usage,
        )
        text, reason = join_text(answer.parts), "length" if answer.finish_reason == "length" else "stop"
        if wanted.stream:
            chunks = reply.text(text) + reply.ending(reason, answer.usage)
            return Response(chunks, media_type="text/event-stream", headers=HEADERS)
        finished = TurnFinished(turn_id=TurnId(""), status=TurnStatus.DONE, reply=text, usage=answer.usage)
        return JSONResponse(reply.completion(finished, reason))
