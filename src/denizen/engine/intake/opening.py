"""Opening a turn: the message and the turn, written together (steps 1 and 2 of `turn.py`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from denizen.domain.agent import Agent, ContextStrategy
from denizen.domain.conversation import Place
from denizen.domain.data_uri import describe_data_uris
from denizen.domain.delegation import Delegation, ParentTurn, parent_to_json
from denizen.domain.delivery import DeliveryKind, DeliveryState
from denizen.domain.demands import DEMANDS, demands_to_json
from denizen.domain.errors import Conflict
from denizen.domain.ids import AgentName, ConversationId, MessageId, SessionId, TurnId, derive, turn_id
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import Message, Part, Role, ToolResultPart, parts_to_json
from denizen.domain.principal import Principal
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import agent_timezone, date_mark, note_data_uris, shorten_to_store, time_mark
from denizen.domain.rate_limit import RateLimit
from denizen.domain.record import record
from denizen.domain.subject import subject_to_json
from denizen.domain.taint import META, taint_to_json
from denizen.domain.tool import Taint
from denizen.domain.turn import PARENT, RUN_BUDGET, ReplyTarget, Turn, TurnFailure, TurnRequest, TurnResult, TurnStatus
from denizen.domain.workflow_run import STARTED
from denizen.engine.intake.rate_limiter import rate_error, take_rate, turn_rate_key
from denizen.ports.inbox import MessageClaim
from denizen.ports.store import Store, UnitOfWork

MARKED_TAIL = 8
"""Where nobody asked in so many messages, the date is told again, which does no harm."""

ROUTED = "routed"
"""Among the options of a turn: its model is chosen for the question. Decided here, so that a turn which is taken up
again after a change of the configuration has the same steps.
"""

ADMINISTRATION = "administration"
"""Among the options of a turn: it belongs to a chat about the administration."""

HOOKED = "hooked"
"""Among the options of a turn: hooks run around it. Decided here, as for `ROUTED`."""

VARIABLES = "variables"
"""Among the options of a turn: what its hooks may tell."""

UNWANTED = "unwanted"
"""The failure of a piece that was tried when its turn ended: it is not tried once more."""


@record
class OpenTurn:
    """A turn with what was written next to it, so that the run need not read it again. `place` is where it was asked,
    and where its answer is read: of a delegated turn that of its parent.
    """

    turn: Turn
    place: Place
    trigger: Message

    @property
    def queue_key(self) -> str:
        return turn_queue_key(self.turn)

    @property
    def owed(self) -> ReplyTarget | None:
        """Where the reply has to go, when it is owed on a platform. `answers` only where they are several. Of a
        delegated turn it is where the reply of its parent goes.
        """
        return find_reply_target(self.turn)

    @property
    def is_delivered(self) -> bool:
        """Whether the answer itself is sent to a platform: that of a turn for which its parent waits is not."""
        parent = self.turn.parent
        return self.owed is not None and (parent is None or parent.is_background)


def find_reply_target(turn: Turn) -> ReplyTarget | None:
    """Where the turn's reply has to go, when it is owed on a platform."""
    row = turn.options.get("owed")
    if not isinstance(row, dict):
        return None
    old, answers = row.get("supersedes"), row.get("answers")
    return ReplyTarget(
        AgentName(str(row["account"])),
        str(row.get("reply_to", "")),
        str(row.get("ticket", "")),
        answers=tuple(map(str, answers)) if isinstance(answers, list) else (),
        supersedes=TurnId(str(old)) if old else None,
        guild=str(row.get("guild", "")),
        may_be_silent=row.get("may_be_silent") is True,
        of_several=row.get("of_several") is True,
        is_unsure=row.get("is_unsure") is True,
        names_agent=row.get("names_agent") is True,
    )


def queue_key(agent: str, conversation: ConversationId) -> str:
    """Turns of one queue run one after another: those of one agent's history."""
    return f"{agent}\x00{conversation}"


def turn_queue_key(turn: Turn) -> str:
    return queue_key(turn.agent, ConversationId(str(turn.options.get("queue_key") or turn.conversation_id)))


def request_queue_key(agent: str, request: TurnRequest) -> str:
    return queue_key(agent, (request.session.place or request.place).conversation_id)


def request_turn_id(agent: Agent, request: TurnRequest) -> TurnId:
    return turn_id(agent.name, request.place.platform, request.platform_id)


async def open_turn(
    store: Store,
    agent: Agent,
    request: TurnRequest,
    *,
    limits: Sequence[RateLimit] = (),
    is_hooked: bool = False,
    now: datetime,
) -> tuple[OpenTurn, bool]:
    """Writes message and turn in one unit of work; False when the same message was opened before. A message that
    another turn answers already stays with that turn. Raises Conflict when a sender gives one id to two messages,
    LimitExceeded when the sender has asked as often as the limits allow; what is refused does not count.
    """
    key = request_turn_id(agent, request)
    async with store.work() as work:
        conversation = await work.conversations.put(request.place, now=now)
        claimed = await _claim(work, key, request, now)
        if claimed is not None:
            turn = await work.turns.get(claimed)
            at = await work.conversations.get(turn.conversation_id)
            return OpenTurn(turn, _asked_at(turn, at.place), await work.messages.get(turn.trigger_id)), False
        home = conversation
        if request.session.place is not None:
            home = await work.conversations.put(request.session.place, now=now)
        fresh_session = request.session.is_new and await work.turns.find(key) is None
        begin = work.sessions.renew if fresh_session else work.sessions.current
        session = await begin(home.id, agent.name, now=now)
        turn, is_new = await work.turns.open(
            Turn(
                id=key,
                conversation_id=conversation.id,
                session_id=session.id,
                agent=agent.name,
                principal=request.sender.principal,
                trigger_id=MessageId(derive("msg", key, Role.USER)),
                status=TurnStatus.OPEN,
                opened_at=now,
                options=_options(agent, request) | ({HOOKED: True} if is_hooked else {}),
            )
        )
        if not is_new:
            _check_same(turn, request)
        meta = await _meta(work, agent, turn, request)
        trigger = Message(
            id=turn.trigger_id,
            conversation_id=conversation.id,
            role=_role(request),
            author=request.sender.author,
            parts=_kept(agent, request),
            created_at=now,
            session_id=session.id,
            turn_id=key,
            platform_id=request.platform_id,
            meta=meta,
        )
        if is_new:
            await _check_rate(work, request.sender.principal, limits, now)
            trigger = await work.messages.add(trigger)
            if request.owed and request.owed.supersedes:
                await work.messages.forget_turn(request.owed.supersedes)
                await end_unwanted(work, request.owed.supersedes, now=now)
            if request.parent:
                await work.delegations.add(_delegation(request, request.parent, turn))
    return OpenTurn(turn, _asked_at(turn, conversation.place), trigger), is_new


def _asked_at(turn: Turn, place: Place) -> Place:
    return turn.parent.place if turn.parent else place


def _delegation(request: TurnRequest, parent: ParentTurn, turn: Turn) -> Delegation:
    return Delegation(
        turn_id=turn.id,
        task_id=parent.task_id,
        parent_id=parent.id,
        asker=request.sender.principal.key,
        is_background=parent.is_background,
        created_at=turn.opened_at,
    )


async def _check_rate(work: UnitOfWork, principal: Principal, limits: Sequence[RateLimit], now: datetime) -> None:
    excess = await take_rate(work, turn_rate_key(principal), limits, now=now)
    if excess is not None:
        raise rate_error(excess)


async def plan_turn(store: Store, agent: Agent, request: TurnRequest, *, now: datetime) -> OpenTurn:
    """Returns the turn that `open_turn` would open; nothing is written. Where there is no session yet, its
    id is empty.
    """
    key, place = request_turn_id(agent, request), request.place
    home = (request.session.place or place).conversation_id
    async with store.work(write=False) as work:
        sessions = await work.sessions.list_sessions(home, agent.name)
        found = next((each for each in sessions if each.closed_at is None and not request.session.is_new), None)
        session = found.id if found else SessionId("")
        turn = Turn(
            id=key,
            conversation_id=place.conversation_id,
            session_id=session,
            agent=agent.name,
            principal=request.sender.principal,
            trigger_id=MessageId(derive("msg", key, Role.USER)),
            status=TurnStatus.OPEN,
            opened_at=now,
            options=_options(agent, request),
        )
        last = await work.messages.list_tail(session, limit=1)
        trigger = Message(
            id=turn.trigger_id,
            conversation_id=place.conversation_id,
            role=_role(request),
            author=request.sender.author,
            parts=_kept(agent, request),
            created_at=now,
            session_id=session,
            turn_id=key,
            platform_id=request.platform_id,
            meta=await _meta(work, agent, turn, request),
            sequence=last[-1].sequence + 1 if last else 1,
        )
    return OpenTurn(turn, place, trigger)


async def load_turn(store: Store, key: TurnId) -> OpenTurn:
    """Raises NotFound."""
    async with store.work(write=False) as work:
        turn = await work.turns.get(key)
        conversation = await work.conversations.get(turn.conversation_id)
        return OpenTurn(turn, _asked_at(turn, conversation.place), await work.messages.get(turn.trigger_id))


async def _claim(work: UnitOfWork, key: TurnId, request: TurnRequest, now: datetime) -> TurnId | None:
    """Takes the messages that this turn answers; the turn that has its message already, if there is one."""
    owed = request.owed
    if owed is None or not owed.answers:
        return None
    platform = request.place.platform
    claims = [MessageClaim(owed.account, platform, post, key) for post in owed.answers]
    taken = await work.inbox.claim(claims, now=now)
    if taken:
        return None
    earlier = await work.inbox.find_claims(owed.account, platform, owed.answers)
    others = [claim.turn_id for claim in earlier.values() if claim.turn_id not in (None, key)]
    return others[0] if others else None


async def end_unwanted(work: UnitOfWork, key: TurnId, *, now: datetime) -> None:
    """Nobody wants the turn's answer any more: it has ended, in whatever process it runs, and owes nothing that was
    not tried yet. Whoever runs it finds that out when it writes down its end.
    """
    turn = await work.turns.find(key)
    if turn is not None and not turn.status.is_final:
        stopped = TurnResult(failure=TurnFailure("Stopped."))
        await work.turns.close(replace(turn, status=TurnStatus.CANCELLED, closed_at=now, result=stopped))
    for delivery in await work.outbox.list_for_turn(key):
        if delivery.kind in (DeliveryKind.PREVIEW, DeliveryKind.CARD, DeliveryKind.CARD_END):
            continue
        if delivery.state is DeliveryState.PENDING:
            await work.outbox.update(replace(delivery, state=DeliveryState.WITHDRAWN))
        elif delivery.state is DeliveryState.SENDING:
            await work.outbox.update(replace(delivery, failure=UNWANTED))


async def _meta(work: UnitOfWork, agent: Agent, turn: Turn, request: TurnRequest) -> dict[str, Json]:
    if _role(request) is Role.TOOL:
        return {META: taint_to_json({Taint.TOOL})}
    meta: dict[str, Json] = {}
    if request.parent and request.parent.taint:
        meta[META] = taint_to_json(request.parent.taint)
    if request.shared:
        meta["speaker"] = request.sender.author.name
    tail = await work.messages.list_tail(turn.session_id, limit=MARKED_TAIL)
    if agent.history.timestamps is not None:
        mark = time_mark(agent.history.timestamps, turn.opened_at, tail[-1].created_at if tail else None)
        if mark:
            meta["time"] = mark
    if agent.history.context is ContextStrategy.SESSION and request.session.history is None:
        asked = [m.created_at for m in tail if m.role is Role.USER and m.turn_id is not None]
        mark = date_mark(turn.opened_at, asked[-1] if asked else None, agent_timezone(agent))
        if mark:
            meta["date"] = mark
    return meta


def _kept(agent: Agent, request: TurnRequest) -> tuple[Part, ...]:
    return shorten_to_store(request.parts, _role(request), agent.history.storing)


def _role(request: TurnRequest) -> Role:
    """Returns whose words the message holds: those of the sender, or results of the sender's tools."""
    return Role.TOOL if all(isinstance(part, ToolResultPart) for part in request.parts) else Role.USER


def _options(agent: Agent, request: TurnRequest) -> JsonObject:
    """Returns the request's options as JSON for the turn's record."""
    asked, session = request.options, request.session
    options: JsonObject = {
        "model": asked.model,
        "instructions": describe_data_uris(asked.instructions),
        "max_output_tokens": asked.max_output_tokens,
        DEMANDS: demands_to_json(asked.demands) or None,
        "supplied": None if session.history is None else [_row(message) for message in session.history],
        ADMINISTRATION: asked.is_administration or None,
        VARIABLES: dict(asked.variables) or None,
        RUN_BUDGET: None if asked.budget_usd is None else str(asked.budget_usd),
        "asked_by_bot": request.sender.author.is_bot or None,
        "queue_key": session.place.conversation_id if session.place else None,
        "owed": _owed(request.owed) if request.owed else None,
        PARENT: parent_to_json(request.parent) if request.parent else None,
        "reach": request.sender.reach.value,
        "said": _fingerprint(request) if request.keyed else None,
        ROUTED: (agent.is_routed and not asked.model and not asked.workflow) or None,
        STARTED: asked.workflow or None,
        "subject": subject_to_json(request.subject) if request.subject else None,
    }
    return {name: value for name, value in options.items() if value not in (None, "")}


def _fingerprint(request: TurnRequest) -> str:
    """Returns a digest of what the sender said, and where. How it is to be answered may differ when it is
    sent again.
    """
    session = request.session
    supplied = None if session.history is None else [_row(message) for message in session.history]
    said = [parts_to_json(request.parts), request.options.instructions, supplied, session.is_new]
    return derive("said", request.place.conversation_id, json.dumps(said, sort_keys=True))


def _check_same(turn: Turn, request: TurnRequest) -> None:
    """Raises Conflict when the turn answers another message of the sender's."""
    said = turn.options.get("said")
    if request.keyed and said and said != _fingerprint(request):
        raise Conflict(
            "This Idempotency-Key stands for another message.",
            code="idempotency_conflict",
            why="what was sent with it before differs, and has its answer",
            fix="Send a new key with each message, and the same one only with the same message.",
        )


def _row(message: PromptMessage) -> JsonObject:
    return {"role": message.role, "parts": parts_to_json(note_data_uris(message.parts))}


def _owed(owed: ReplyTarget) -> JsonObject:
    row: JsonObject = {
        "account": owed.account,
        "reply_to": owed.reply_to,
        "ticket": owed.ticket,
        "answers": list(owed.answers) if len(owed.answers) > 1 else None,
        "supersedes": owed.supersedes,
        "guild": owed.guild,
        "may_be_silent": owed.may_be_silent,
        "of_several": owed.of_several,
        "is_unsure": owed.is_unsure,
        "names_agent": owed.names_agent,
    }
    return {name: value for name, value in row.items() if value}
