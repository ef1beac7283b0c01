"""The OpenAI-compatible API: agents as models, turns as completions.

`POST /v1/chat/completions` takes two headers beyond OpenAI's: `X-Denizen-Session: NAME` (or `metadata.session`) uses
the server's own history of that name, so only the last message counts; `Idempotency-Key` makes a repeated request
return the same turn's answer, and another message under the same key is refused (409). A client that leaves stops its
turn (inventory S15), unless one of the two says that the turn matters beyond the connection. Plain Starlette routes:
this is the path on which milliseconds count.
"""

from __future__ import annotations

from contextlib import aclosing

import anyio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from denizen.domain.agent import Agent
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.events import Notice, ReasoningAdded, TextAdded, TurnFinished, TurnStarted
from denizen.domain.message import Author
from denizen.domain.turn import Inbound, TurnStatus
from denizen.web.api.completion_format import DONE, CompletionWriter, StreamedText, model_json, models_json, sse
from denizen.web.api.completion_format import CompletionRequest, parse_completion
from denizen.web.api.chat import API, IDEMPOTENCY_HEADER, TURN_HEADER, message_key, own_place, turn_id_for
from denizen.web.http.request import read_object
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.errors import describe_problem, openai_error, turn_failure
from denizen.web.http.event_stream import Chunks, EventStream, SseComment, StreamOptions, wait_for_disconnect
from denizen.web.http.auth import get_principal

SESSION_HEADER = "x-denizen-session"
CLIENT_GONE = 499
"""Nobody reads this answer; the status is for the log."""


class CompletionRoutes:
    """The routes under `/v1`."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps
        self._started = int(deps.clock.now().timestamp())

    @property
    def routes(self) -> list[Route]:
        return [
            Route("/v1/models", self.list_models, methods=["GET"]),
            Route("/v1/models/{model:path}", self.get_model, methods=["GET"]),
            Route("/v1/chat/completions", self.complete, methods=["POST"]),
        ]

    async def list_models(self, _: Request) -> Response:
        names = [agent.name for agent in self._deps.queries.list_agents()]
        return JSONResponse(models_json(names, self._started))

    async def get_model(self, request: Request) -> Response:
        agent = self._agent(request.path_params["model"])
        return JSONResponse(model_json(agent.name, self._started))

    async def complete(self, request: Request) -> Response:
        asked = parse_completion(await read_object(request))
        agent = self._agent(asked.model)
        inbound, keeps = _inbound(request, asked, agent)
        reply = CompletionWriter(
            turn_id_for(inbound),
            agent.name,
            created=int(self._deps.clock.now().timestamp()),
            include_usage=asked.include_usage,
        )
        headers = {TURN_HEADER: turn_id_for(inbound)}
        if asked.stream:
            conduct = StreamOptions(
                on_error=lambda error: sse(openai_error(describe_problem(error))) + DONE,
                on_gone=(lambda: None) if keeps else (lambda: self._cancel(inbound)),
                start_after_s=self._deps.timing.keep_alive_s,
                keep_alive_s=self._deps.timing.keep_alive_s,
            )
            return EventStream(self._chunks(inbound, agent, reply), conduct, headers)
        finished = await self._ask(request, inbound, keeps=keeps)
        if finished is None:
            return Response(status_code=CLIENT_GONE)
        _text_of(finished)
        reason = await self._finish_reason(finished, inbound, agent)
        return JSONResponse(reply.completion(finished, reason), headers=headers)

    def _agent(self, name: str) -> Agent:
        try:
            return self._deps.queries.get_agent(name)
        except NotFound as error:
            raise NotFound(error.message, code="model_not_found", why=error.why, fix=error.fix) from error

    async def _ask(self, request: Request, inbound: Inbound, *, keeps: bool) -> TurnFinished | None:
        """Waits for the turn's end; None when the client left before."""
        finished: TurnFinished | None = None
        failure: DenizenError | None = None
        async with anyio.create_task_group() as tasks:

            async def watch() -> None:
                await wait_for_disconnect(request.receive)
                if not keeps:
                    self._cancel(inbound)
                tasks.cancel_scope.cancel()

            tasks.start_soon(watch)
            try:
                finished = await self._deps.turns.ask(inbound)
            except DenizenError as error:
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return finished

    async def _chunks(self, inbound: Inbound, agent: Agent, reply: CompletionWriter) -> Chunks:
        wording = StreamedText()
        opened = False
        async with aclosing(self._deps.turns.stream(inbound)) as events:
            async for event in events:
                text = ""
                match event:
                    case TurnStarted():
                        wording.begin()
                    case TextAdded():
                        text = wording.add(event)
                    case Notice():
                        yield SseComment(event.text)
                    case ReasoningAdded() if wording.is_followed:
                        yield (b"" if opened else reply.opening()) + reply.reasoning(event.text)
                        opened = True
                    case TurnFinished():
                        text = wording.finish(_text_of(event))
                    case _:
                        pass
                if text or (isinstance(event, TurnFinished) and not opened):
                    yield (b"" if opened else reply.opening()) + reply.text(text)
                    opened = True
                if isinstance(event, TurnFinished):
                    late = b"" if wording.is_followed or not event.reasoning else reply.reasoning(event.reasoning)
                    yield late + reply.pictures(event.images)
                    yield reply.ending(await self._finish_reason(event, inbound, agent), event.usage)

    async def _finish_reason(self, finished: TurnFinished, inbound: Inbound, agent: Agent) -> str:
        """`length` when the last step was cut off. The record is read only when the tokens make that possible."""
        limit = inbound.max_output_tokens or agent.limits.max_output_tokens
        if finished.usage.output_tokens < limit:
            return "stop"
        steps = (await self._deps.queries.get_turn(finished.turn_id)).steps
        return "length" if steps and steps[-1].finish_reason == "length" else "stop"

    def _cancel(self, inbound: Inbound) -> None:
        self._deps.turns.cancel(turn_id_for(inbound))


def _inbound(request: Request, asked: CompletionRequest, agent: Agent) -> tuple[Inbound, bool]:
    """The message for the engine, and whether its turn goes on when the client leaves."""
    principal = get_principal(request)
    session = request.headers.get(SESSION_HEADER, "") or asked.session
    idempotency_key = request.headers.get(IDEMPOTENCY_HEADER, "")
    key = message_key(principal, idempotency_key)
    inbound = Inbound(
        agent=agent.name,
        place=own_place(API, principal, session) if session else Place(API, principal.key, key),
        principal=principal,
        author=Author(principal.id, asked.user or principal.name),
        parts=asked.parts,
        platform_id=key,
        supplied=None if session else asked.supplied,
        instructions=asked.instructions,
        # A client may ask for less than the operator allows, not for more.
        max_output_tokens=asked.max_output_tokens and min(asked.max_output_tokens, agent.limits.max_output_tokens),
        temperature=asked.temperature,
        keyed=bool(idempotency_key),
    )
    return inbound, bool(session or idempotency_key)


def _text_of(finished: TurnFinished) -> str:
    """The answer. Raises the turn's failure when it has none."""
    if finished.status is not TurnStatus.DONE:
        raise turn_failure(finished)
    return finished.reply
