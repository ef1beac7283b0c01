"""`/api/questions`: what agents asked the owner, and answers. For owners."""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.question import OwnerQuestion, QuestionStatus
from denizen.engine.outbox.questions import QuestionInbox
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import TEXT, ApiRoute, Operation, object_schema
from denizen.web.http.request import QueryParameter, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.questions import QuestionInfo

_STATUS = QueryParameter(name="status", description="Only those in this state.", choices=tuple(QuestionStatus))


class QuestionRoutes:
    """The routes that list, answer and dismiss questions."""

    def __init__(self, questions: QuestionInbox) -> None:
        self._questions = questions

    @property
    def routes(self) -> list[ApiRoute]:
        one = "/api/questions/{question_id}"
        return [
            ApiRoute(
                "GET",
                "/api/questions",
                self.list_questions,
                Access.OWNER,
                Operation("What agents asked the owner, the newest first", answer=list[QuestionInfo], query=(_STATUS,)),
            ),
            ApiRoute(
                "POST",
                one,
                self.answer,
                Access.OWNER,
                Operation(
                    "Answer a question; the agent hears of it as a message in its conversation",
                    object_schema("answer", answer=TEXT),
                    QuestionInfo,
                ),
            ),
            ApiRoute(
                "POST",
                f"{one}/dismiss",
                self.dismiss,
                Access.OWNER,
                Operation("End a question without an answer", answer=QuestionInfo),
            ),
        ]

    async def list_questions(self, request: Request) -> Response:
        status = _STATUS.read_text(request)
        found = await self._questions.list_questions(status=QuestionStatus(status) if status else None)
        return JSONResponse([asdict(question_to_wire(each)) for each in found])

    async def answer(self, request: Request) -> Response:
        answer = read_text(await read_object(request), "answer")
        done = await self._questions.answer(request.path_params["question_id"], get_principal(request), answer)
        return JSONResponse(asdict(question_to_wire(done)))

    async def dismiss(self, request: Request) -> Response:
        done = await self._questions.dismiss(request.path_params["question_id"], get_principal(request))
        return JSONResponse(asdict(question_to_wire(done)))


def question_to_wire(question: OwnerQuestion) -> QuestionInfo:
    """Returns the question as clients get it."""
    reply = question.reply
    return QuestionInfo(
        id=question.id,
        turn_id=question.turn_id,
        agent=question.agent,
        asker=question.asker_name or question.asker,
        platform=question.place.platform,
        question=question.text,
        asked_at=question.created_at.isoformat(),
        status=question.status,
        answer=reply.answer,
        answered_by=reply.answerer or reply.answered_by,
        answered_at=reply.answered_at.isoformat() if reply.answered_at else None,
    )
