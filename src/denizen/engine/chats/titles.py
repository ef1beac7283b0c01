"""Titles of chats, which the agent's model makes of the first message.

A chat has the first words of its message as a title at once. The model's title takes their place, made in a durable run
beside the first answer; a small model is asked after the answer, which it would only delay. Where the model fails, the
first words stay.
"""

from __future__ import annotations

import logging
from contextlib import aclosing

from denizen.domain.chat import Chat, clean_title
from denizen.domain.errors import DenizenError, NotFound
from denizen.domain.ids import ConversationId, TurnId, derive
from denizen.domain.json import Json, JsonObject
from denizen.engine.budget.side_completion import BilledCompletion, SideCompletion
from denizen.engine.chats.live_chats import LiveChats, TitleChanged
from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.opening import OpenTurn, load_turn
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner
from denizen.ports.toolset import CallScope

WORKFLOW = "chat_title"
"""The durable run's name. It is stored; changing it would orphan runs that are under way."""

INSTRUCTIONS = (
    "Name the topic of the user's message as the title of a chat, in the language of the message: "
    "at most 30 characters, no quotes, no punctuation at the end. Do not answer the message. Write the title only."
)
READ_CHARS = 2000
"""So much of a message is enough to name its topic."""
MAX_OUTPUT_TOKENS = 400
"""More than a title needs, since some models think before they write it."""

_log = logging.getLogger("denizen.chats")


def title_run_id(turn_id: TurnId) -> str:
    """Returns the id of the durable run that makes a title of a turn's message."""
    return derive("title", turn_id)


class ChatTitles:
    """Makes titles. One of a process."""

    def __init__(self, runtime: Runtime, services: EngineServices, turns: TurnRunner, live: LiveChats) -> None:
        self._runtime = runtime
        self._services = services
        self._turns = turns
        self._live = live
        self._pending: set[ConversationId] = set()
        consult = BilledCompletion(runtime, services.store, services.clock)
        self._complete = SideCompletion(runtime, consult)
        services.durable.register(WORKFLOW, self._run)

    def is_pending(self, conversation_id: ConversationId) -> bool:
        """Tells whether a title is being made in this process."""
        return conversation_id in self._pending

    async def submit(self, chat: Chat, turn_id: TurnId) -> None:
        """Starts the run that makes the title of a new chat. A fault is a line in the log: the chat has a title."""
        payload: JsonObject = {"turn_id": turn_id, "conversation_id": chat.conversation_id, "title": chat.title}
        self._pending.add(chat.conversation_id)
        try:
            await self._services.durable.submit(WORKFLOW, title_run_id(turn_id), payload)
        except DenizenError as error:
            self._pending.discard(chat.conversation_id)
            _log.warning("title not begun: %s", error.message, extra={"turn": turn_id, **error.fields})

    async def _run(self, payload: JsonObject) -> Json:
        conversation = ConversationId(str(payload["conversation_id"]))
        try:
            return {"status": await self._make(conversation, TurnId(str(payload["turn_id"])), str(payload["title"]))}
        except NotFound:
            return {"status": "removed"}
        finally:
            self._pending.discard(conversation)
            self._live.publish(conversation, TitleChanged(""))

    async def _make(self, conversation: ConversationId, turn_id: TurnId, first_title: str) -> str:
        """Makes the title, and returns how that ended. Raises NotFound when the chat was deleted meanwhile."""
        opened = await load_turn(self._services.store, turn_id)
        if self._is_slow(opened):
            async with aclosing(self._turns.watch(turn_id)) as events:
                async for _ in events:
                    pass
        title = str(await self._services.durable.step("title", lambda: self._ask(opened)))
        if not title:
            return "failed"
        async with self._services.store.work() as work:
            is_set = await work.chats.set_title(conversation, title, instead_of=first_title)
        if is_set:
            self._live.publish(conversation, TitleChanged(title))
        return "done" if is_set else "late"

    def _is_slow(self, opened: OpenTurn) -> bool:
        generation = self._runtime.current
        return generation.models.get(generation.agent(opened.turn.agent).model).capabilities.small

    async def _ask(self, opened: OpenTurn) -> Json:
        """Returns the title, empty when there is none. It must not raise: a failure is not worth trying again."""
        turn = opened.turn
        scope = CallScope(
            agent=turn.agent, principal=turn.principal, place=opened.place, session_id=turn.session_id, turn_id=turn.id
        )
        text = opened.trigger.text[:READ_CHARS]
        try:
            said = await self._complete(scope, INSTRUCTIONS, text, max_output_tokens=MAX_OUTPUT_TOKENS)
        except DenizenError as error:
            _log.warning("title failed: %s", error.message, extra={"turn": turn.id, **error.fields})
            return ""
        return clean_title(said)
