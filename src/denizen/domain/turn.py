"""A turn and its steps: what is recorded of the life of one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from denizen.domain.approval import AskerReach
from denizen.domain.conversation import Place
from denizen.domain.delegation import ParentTurn, parent_from_json
from denizen.domain.demands import AnswerDemands
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Author, Part
from denizen.domain.principal import Principal
from denizen.domain.prompt import PromptMessage
from denizen.domain.record import record
from denizen.domain.routing import Route
from denizen.domain.subject import Subject
from denizen.domain.tool import ToolCall
from denizen.domain.usage import Usage
from denizen.domain.verdict import CallOutcome

PARENT = "parent"
"""Among the options of a turn: the turn that handed it its task."""

RUN_BUDGET = "budget_usd"
"""Among the options of a turn: the most that it may cost."""

STOP = "stop"
"""Among the options of a turn: somebody has stopped it, in whatever process it runs or will run."""


class TurnStatus(StrEnum):
    """How far a turn has come. REFUSED: it was not allowed to run; CANCELLED: somebody stopped it; SKIPPED: a hook
    found that there was nothing to do (`domain/hook`), so it has neither an answer nor a failure.
    """

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    SKIPPED = "skipped"

    @property
    def is_final(self) -> bool:
        return self is not TurnStatus.OPEN

    @property
    def is_error(self) -> bool:
        """Whether an answer was wanted and there is none."""
        return self in (TurnStatus.FAILED, TurnStatus.CANCELLED, TurnStatus.REFUSED)


@record
class ReplyTarget:
    """The reply is owed on a platform, and goes out through the outbox.

    `account` is the agent whose login sends it, `reply_to` the platform message that it answers, `ticket` a short-lived
    right to answer a command. `answers` are the platform messages that the turn claims: each is answered by one turn.
    `supersedes` is the turn that answered an earlier text of the same message. `guild` is the community it is in, by
    the platform's id; empty in a direct talk. `may_be_silent`: nobody waits for an answer (`domain/speaker_choice`).
    `of_several`: different people wrote what it answers, so nothing is done on the platform in the name of one of them.
    `is_unsure`: somebody else may have edited what it answers. `names_agent`: the reply says which agent gives it,
    since another one usually answers there.
    """

    account: AgentName
    reply_to: str = ""
    ticket: str = ""
    answers: tuple[str, ...] = ()
    supersedes: TurnId | None = None
    guild: str = ""
    may_be_silent: bool = False
    of_several: bool = False
    is_unsure: bool = False
    names_agent: bool = False


@record
class Sender:
    """Who sent a message. `reach` is how they can be asked back about a call that needs approval."""

    author: Author
    principal: Principal
    reach: AskerReach = AskerReach.NOBODY


@record(kw_only=True)
class RequestOptions:
    """How a sender wants a message answered. `model` overrides the agent's model for this turn. `is_administration` is
    set for chats about the administration, by those who checked that the sender may have one (`engine/chats`).
    `variables` are what the hooks of the turn may tell (`domain/hook`), such as when a schedule ran last. `workflow` is
    the start of a run, which then takes the place of the agent's answer (`domain/workflow_run`). `budget_usd` is the
    most that the turn may cost.
    """

    instructions: str = ""
    model: str = ""
    max_output_tokens: int | None = None
    is_administration: bool = False
    demands: AnswerDemands = field(default_factory=AnswerDemands)
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    workflow: JsonObject = field(default_factory=dict[str, Json])
    budget_usd: Decimal | None = None


@record
class SessionChoice:
    """The session that a message continues. `place` is where it lives when not where the message was sent, and `is_new`
    starts a fresh one. `history` is what the client carries itself (OpenAI-compatible clients), empty at its beginning;
    it is used instead of the stored session.
    """

    place: Place | None = None
    is_new: bool = False
    history: tuple[PromptMessage, ...] | None = None


@record(kw_only=True)
class TurnRequest:
    """A message that is to be answered by a turn.

    `parts` are what the sender says, or nothing but results of calls that an earlier turn left to the sender.
    `platform_id` is unique on its platform: handing the same one in twice makes one turn. `keyed` says that the sender
    chose the id: a message that says something else under the same one is refused. `shared` says that others talk here
    too, so that the model is told who speaks. `subject` is what the talk is about, where the platform says so. `parent`
    is the turn that hands the task to this one; then `owed` is where the parent's reply goes.
    """

    agent: AgentName
    place: Place
    sender: Sender
    parts: tuple[Part, ...]
    platform_id: str
    keyed: bool = False
    shared: bool = False
    owed: ReplyTarget | None = None
    subject: Subject | None = None
    parent: ParentTurn | None = None
    session: SessionChoice = field(default_factory=SessionChoice)
    options: RequestOptions = field(default_factory=RequestOptions)


@record
class TurnFailure:
    """Why a turn ended without an answer. `message` is safe to show to anybody, `family` names the error family, which
    says who acts next, and `fix` tells what to do.
    """

    message: str
    code: str = ""
    family: str = ""
    fix: str = ""


@record(kw_only=True)
class TurnResult:
    """The final text of a turn or its failure, the model that answered last, and what all requests have cost."""

    reply: str = ""
    failure: TurnFailure | None = None
    model: str = ""
    usage: Usage = field(default_factory=Usage)


@record(kw_only=True)
class Turn:
    """One trigger until its reply is delivered. `result` is filled when the turn is closed. `route` is None where the
    model was not chosen for the question.
    """

    id: TurnId
    conversation_id: ConversationId
    session_id: SessionId
    agent: AgentName
    principal: Principal
    trigger_id: MessageId
    status: TurnStatus
    opened_at: datetime
    closed_at: datetime | None = None
    options: Mapping[str, Json] = field(default_factory=dict[str, Json])
    route: Route | None = None
    result: TurnResult = field(default_factory=TurnResult)

    @property
    def parent(self) -> ParentTurn | None:
        """The turn that handed this one its task; None where somebody asked it."""
        return parent_from_json(self.options.get(PARENT))

    @property
    def is_stop_asked(self) -> bool:
        """Whether somebody has stopped the turn, which may not have come to its end yet."""
        return self.options.get(STOP) is True


@record(kw_only=True)
class Step:
    """One model request of a turn. `number` counts from 1. `purpose` is `act`, `plan`, `answer` or `final`; where the
    router was asked, that is number 0, `route`.
    """

    turn_id: TurnId
    number: int
    model: str
    purpose: str
    finish_reason: str
    usage: Usage
    duration_ms: int
    created_at: datetime


@record(kw_only=True)
class CallRecord:
    """One tool call of a step with its outcome. `position` orders calls within the step; the calls from within others
    come after those of the step itself.
    """

    turn_id: TurnId
    step: int
    position: int
    tool_call: ToolCall
    outcome: CallOutcome
    cached: bool
    created_at: datetime
