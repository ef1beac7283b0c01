"""Questions that agents leave for the owner: kept in an inbox, sent as direct messages, answered whenever.

Asking waits for nobody: the question is written down, and `run` sends it. The answer, given on the page, in the
terminal, over HTTP or in the direct message, reaches the agent as a message in the conversation where it asked, by a
turn with the rights of the one whose turn asked. That turn's id derives from the question's, so a process that is
killed while it hands an answer over does so once.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

import anyio

from denizen.domain.approval import AskerReach
from denizen.domain.clock import Clock
from denizen.domain.conversation import Place
from denizen.domain.delivery import Delivery, DeliveryKind, DeliveryTarget
from denizen.domain.errors import DenizenError, LimitExceeded, Unavailable, list_fields
from denizen.domain.ids import AgentName, ConversationId, derive, fresh
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal
from denizen.domain.question import (
    MAX_OPEN,
    MAX_OPEN_OF_ASKER,
    OwnerQuestion,
    QuestionStatus,
    answer_question,
    check_question,
    dismiss_question,
    question_card,
    question_end,
    question_id,
    withdraw_question,
)
from denizen.domain.rate_limit import HOUR_S, RateLimit
from denizen.domain.record import record
from denizen.domain.turn import ReplyTarget, RequestOptions, Sender, SessionChoice, Turn, TurnRequest
from denizen.domain.workflow_run import STARTED
from denizen.engine.accounts.connected_accounts import ConnectedAccounts
from denizen.engine.configuration.generation import Runtime
from denizen.engine.events.signal import Signal
from denizen.engine.intake.opening import ADMINISTRATION, find_reply_target
from denizen.engine.intake.rate_limiter import take_rate
from denizen.ports.channel import Channel
from denizen.ports.store import Store, UnitOfWork
from denizen.ports.toolset import CallScope
from denizen.skill import OwnerQuestions, quote_untrusted

IDLE_S = 30.0
"""How often one looks for what nobody announced: another process may have asked or answered."""
MAX_OWNERS = 3
"""So many owners at most are written to about one question."""
DIRECT_TIMEOUT_S = 10.0
ASKED_OF_OWNER = RateLimit(calls=10, window_s=HOUR_S)
"""How often the turns of one person may ask the owner something."""

SubmitTurn = Callable[[TurnRequest], Awaitable[Turn]]

_log = logging.getLogger("denizen.questions")


class QuestionInbox:
    """One for a process. `run` sends questions and hands answers over, as long as it runs."""

    def __init__(
        self,
        runtime: Runtime,
        store: Store,
        clock: Clock,
        wake: Callable[[str, AgentName], None],
        *,
        channels: ConnectedAccounts,
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._clock = clock
        self._wake = wake
        self._channels = channels
        self._changed = Signal(channels.added)

    @property
    def changed(self) -> Signal:
        """Sent when there may be something to do."""
        return self._changed

    # --- asking ------------------------------------------------------------------------------------------------------

    def open(self, scope: CallScope) -> OwnerQuestions:
        """The questions that the call of this scope may leave."""
        return _ScopedQuestions(self, scope)

    async def ask(self, scope: CallScope, text: str) -> OwnerQuestion:
        """Leaves a question. The same call again leaves the same one.

        Raises InvalidInput, and LimitExceeded when the owner was asked too often or too many questions wait.
        """
        asked, now = check_question(text), self._clock.now()
        question = OwnerQuestion(
            id=question_id(scope.options.idempotency_key or fresh("qst")),
            turn_id=scope.turn_id,
            agent=scope.agent,
            asker=scope.principal.key,
            asker_name=scope.principal.name,
            place=scope.place,
            text=asked,
            created_at=now,
        )
        async with self._store.work() as work:
            if known := await work.questions.find(question.id):
                return known
            if await work.questions.count_open(scope.agent) >= MAX_OPEN:
                raise LimitExceeded(
                    f"{MAX_OPEN} questions wait for the owner's answer already.",
                    code="questions_full",
                    fix="Go on without the answer.",
                )
            if await work.questions.count_open(scope.agent, asker=scope.principal.key) >= MAX_OPEN_OF_ASKER:
                raise LimitExceeded(
                    f"{MAX_OPEN_OF_ASKER} questions of the same person wait for the owner's answer already.",
                    code="questions_full",
                    why="one person's questions must leave room for those of others",
                    fix="Go on without the answer.",
                )
            key = f"question\x00{scope.principal.key}"
            if await take_rate(work, key, (ASKED_OF_OWNER,), now=now) is not None:
                raise LimitExceeded(
                    f"The owner was asked {ASKED_OF_OWNER.calls} things for the same person within the hour.",
                    code="questions_rate",
                    fix="Go on without the answer.",
                )
            await work.questions.add(question)
        self._changed.send()
        _log.info("a question to the owner", extra={"question": question.id, "turn": question.turn_id})
        return question

    # --- answering ---------------------------------------------------------------------------------------------------

    async def list_questions(
        self, *, status: QuestionStatus | None = None, limit: int = 100
    ) -> Sequence[OwnerQuestion]:
        """The newest first."""
        async with self._store.work(write=False) as work:
            return await work.questions.list_questions(status=status, limit=limit)

    async def answer(self, key: str, by: Principal, answer: str) -> OwnerQuestion:
        """Keeps the answer, which the agent is told. Raises NotFound, NotAllowed for everybody but owners, Conflict
        when it is answered or dismissed already, and InvalidInput for an answer that is empty or too long.
        """
        async with self._store.work() as work:
            question = answer_question(await work.questions.take(key), by, answer, now=self._clock.now())
            await self._end(work, question)
        return self._announce(question)

    async def dismiss(self, key: str, by: Principal) -> OwnerQuestion:
        """Ends the question without an answer. Raises as `answer` does."""
        async with self._store.work() as work:
            question = dismiss_question(await work.questions.take(key), by, now=self._clock.now())
            await self._end(work, question)
        return self._announce(question)

    async def withdraw(self, call_key: str) -> None:
        """Ends the open question that the call with this idempotency key left: nobody waits for its answer any more."""
        async with self._store.work() as work:
            await self._withdraw(work, question_id(call_key))
        self._changed.send()

    async def end_turn(self, work: UnitOfWork, turn: Turn) -> None:
        """Ends the open questions of a turn that waited for their answers itself, and has ended."""
        for question in await work.questions.list_questions(status=QuestionStatus.OPEN):
            if question.turn_id == turn.id:
                await self._withdraw(work, question.id)

    async def _withdraw(self, work: UnitOfWork, key: str) -> None:
        known = await work.questions.find(key)
        if known is not None and known.status is QuestionStatus.OPEN:
            await self._end(work, withdraw_question(await work.questions.take(key), now=self._clock.now()))

    async def _end(self, work: UnitOfWork, question: OwnerQuestion) -> None:
        await work.questions.update(question)
        cards = {_card_id(question, number) for number in range(MAX_OWNERS)}
        ends = [
            Delivery(
                id=derive("dlv", card.id, "end"),
                turn_id=card.turn_id,
                position=card.position,
                kind=DeliveryKind.CARD_END,
                agent=card.agent,
                target=DeliveryTarget(card.target.place),
                content=question_end(question),
                created_at=self._clock.now(),
            )
            for card in await work.outbox.list_for_turn(question.turn_id)
            if card.id in cards
        ]
        await work.outbox.add(ends)

    def _announce(self, question: OwnerQuestion) -> OwnerQuestion:
        _log.info("question", extra={"question": question.id, "status": question.status})
        for platform, account in self._runtime.current.account_policies:
            self._wake(platform, account)
        self._changed.send()
        return question

    # --- sending, and handing answers over ---------------------------------------------------------------------------

    async def run(self, submit: SubmitTurn) -> None:
        """Sends what was asked and hands over what was answered, until it is cancelled."""
        while True:
            changed = self._changed.next
            wait_s = await self.settle(submit)
            with anyio.move_on_after(wait_s):
                await changed.wait()

    async def settle(self, submit: SubmitTurn) -> float | None:
        """Does once what is to be done now. Returns how many seconds to wait for the next look; None where no account
        is connected and no question is open.
        """
        async with self._store.work(write=False) as work:
            untold = await work.questions.list_untold()
            answered = await work.questions.list_questions(status=QuestionStatus.ANSWERED)
            waiting = await work.questions.list_questions(status=QuestionStatus.OPEN, limit=1)
        for question in untold:
            await self._tell_owners(question)
        for question in reversed(answered):
            await self._hand_over(question, submit)
        return IDLE_S if waiting or answered or self._channels.list_all() else None

    async def _tell_owners(self, question: OwnerQuestion) -> None:
        """Owes the direct messages, once there is an account that has an owner."""
        found = self._find_account(question)
        if found is None:
            return
        channel, owners = found
        places: list[Place] = []
        is_away = False
        for user_id in owners[:MAX_OWNERS]:
            try:
                with anyio.fail_after(DIRECT_TIMEOUT_S):
                    places.append(await channel.open_direct(user_id))
            except (DenizenError, TimeoutError) as error:
                is_away = is_away or isinstance(error, Unavailable | TimeoutError)
                about = {"user": user_id, **list_fields(error)}
                _log.warning("an owner cannot be written to: %s", error, extra=about)
        if is_away and not places:
            return  # tried again when it is there again
        async with self._store.work() as work:
            current = await work.questions.find(question.id)
            if current is None or current.is_told or current.status is not QuestionStatus.OPEN:
                return
            await work.questions.update(replace(current, is_told=True))
            await work.outbox.add([_plan_card(current, number, channel, place) for number, place in enumerate(places)])
        self._wake(channel.platform, channel.agent)

    def _find_account(self, question: OwnerQuestion) -> tuple[Channel, list[str]] | None:
        """Returns the connected account that writes, and whom to: one that has an owner, the agent's own first, and
        where the question was asked before other platforms.
        """
        policies = self._runtime.current.account_policies
        found = [
            (channel, sorted(policy.staff.owners))
            for channel in self._channels.list_all()
            if (policy := policies.get((channel.platform, channel.agent))) is not None and policy.staff.owners
        ]
        found.sort(key=lambda each: (each[0].agent != question.agent, each[0].platform != question.place.platform))
        return found[0] if found else None

    async def _hand_over(self, question: OwnerQuestion, submit: SubmitTurn) -> None:
        """Opens the turn that hears of the answer; a run of a workflow waits for it itself. What a limit refuses now is
        tried again.
        """
        status = QuestionStatus.DELIVERED
        try:
            async with self._store.work(write=False) as work:
                turn = await work.turns.get(question.turn_id)
                session = await _find_session_place(work, turn)
            if STARTED not in turn.options:
                await submit(_plan_turn(question, turn, session))
        except (LimitExceeded, Unavailable) as error:
            _log.warning("an answer waits", extra={"question": question.id, **error.fields})
            return
        except DenizenError as error:
            _log.warning("an answer reaches nobody: %s", error, extra={"question": question.id, **error.fields})
            status = QuestionStatus.LOST
        async with self._store.work() as work:
            current = await work.questions.find(question.id)
            if current is not None and current.status is QuestionStatus.ANSWERED:
                await work.questions.update(replace(current, status=status))


async def _find_session_place(work: UnitOfWork, turn: Turn) -> Place | None:
    """Returns where the turn keeps its history, if that is not where it was asked."""
    key = turn.options.get("queue_key")
    return (await work.conversations.get(ConversationId(str(key)))).place if key else None


def _plan_turn(question: OwnerQuestion, turn: Turn, session: Place | None) -> TurnRequest:
    """The words are the owner's; what may be done about them is what the one may do whose turn asked.

    A page may have told the agent what to ask: the question stands between marks, so that it neither speaks for the
    owner nor counts as clean.
    """
    reply, owed = question.reply, find_reply_target(turn)
    asked = quote_untrusted(question.text, source=f"your question {question.id}")
    told = f"[The owner answers a question of yours:]\n{reply.answer}\n\n[You had asked:]\n{asked}"
    user_id = reply.answered_by.rpartition(":")[2]
    return TurnRequest(
        agent=question.agent,
        place=question.place,
        sender=Sender(Author(user_id, reply.answerer), turn.principal, AskerReach(str(turn.options.get("reach", "")))),
        parts=(TextPart(told),),
        platform_id=f"answer:{question.id}",
        shared=True,
        owed=None
        if owed is None
        else ReplyTarget(
            owed.account, reply_to=owed.reply_to, guild=owed.guild, of_several=owed.of_several, is_unsure=owed.is_unsure
        ),
        session=SessionChoice(session),
        options=RequestOptions(
            model=str(turn.options.get("model", "")), is_administration=turn.options.get(ADMINISTRATION) is True
        ),
    )


def _plan_card(question: OwnerQuestion, number: int, channel: Channel, place: Place) -> Delivery:
    return Delivery(
        id=_card_id(question, number),
        turn_id=question.turn_id,
        position=_first_position(question) + number,
        kind=DeliveryKind.CARD,
        agent=channel.agent,
        target=DeliveryTarget(place),
        content=question_card(question),
        created_at=question.created_at,
    )


def _first_position(question: OwnerQuestion) -> int:
    """Returns the position of the first direct message among those of the turn, the same in every process."""
    return MAX_OWNERS * int(question.id[-7:], 16) + MAX_OWNERS


def _card_id(question: OwnerQuestion, number: int) -> str:
    return derive("dlv", question.id, str(number))


@record
class _ScopedQuestions:
    """`denizen.skill.OwnerQuestions`."""

    inbox: QuestionInbox
    scope: CallScope

    async def ask(self, text: str) -> str:
        return (await self.inbox.ask(self.scope, text)).id
