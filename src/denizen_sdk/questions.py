"""Questions that agents left for the owner. For owners. Times are ISO 8601 in UTC."""

from __future__ import annotations

from denizen_sdk.calls import ClientCalls, quote_segment
from denizen_sdk.records import from_json, record


@record(kw_only=True)
class QuestionInfo:
    """A question of an agent, from a turn that `asker` had asked for. `status` is open, answered (the agent was not
    told yet), delivered, dismissed or lost (nobody was left to tell).
    """

    id: str
    turn_id: str
    agent: str
    asker: str
    platform: str
    question: str
    asked_at: str
    status: str
    answer: str = ""
    answered_by: str = ""
    answered_at: str | None = None


class QuestionCalls(ClientCalls):
    """The calls of `/api/questions`. All raise NetworkError, and ApiError (403 for everybody but owners)."""

    async def list_questions(self, *, status: str = "") -> list[QuestionInfo]:
        """Returns the questions, the newest first."""
        return await self._list(QuestionInfo, "/api/questions", status=status)

    async def answer_question(self, question: str, answer: str) -> QuestionInfo:
        """Answers a question; the agent hears of it as a message in its conversation. Raises ApiError (404, and 409 for
        one that is answered or dismissed already).
        """
        path = f"/api/questions/{quote_segment(question)}"
        return from_json(QuestionInfo, await self._connection.request("POST", path, body={"answer": answer}))

    async def dismiss_question(self, question: str) -> QuestionInfo:
        """Ends a question without an answer. Raises as `answer_question` does."""
        path = f"/api/questions/{quote_segment(question)}/dismiss"
        return from_json(QuestionInfo, await self._connection.request("POST", path))
