"""Titles of chats, which the agent's model makes of the first message.

A chat has the first words of its message as a title at once. The model's title takes their place, made in a durable run
beside the first answer; a small model is asked after the answer, which it would only delay. Where the model fails, the
first words stay.
"""

from __future__ import annotations

import logging

from denizen.domain.chat import Chat, clean_title
from denizen.domain.errors import DenizenError
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
        payload: JsonObject = {"turn_id": turn_id, "title": chat.title}
        try:
            await self._services.durable.submit(WORKFLOW, title_run_id(turn_id), payload)
        except DenizenError as error:
            _log.warning("title not begun: %s", error.message, extra={"turn": turn_id, **error.fields})
        else:
            self._pending.add(chat.conversation_id)

    async def _run(self, payload: JsonObject) -> Json:
        opened = await load_turn(self._services.store, TurnId(str(payload["turn_id"])))
        conversation = opened.turn.conversation_id
        try:
            if self._is_slow(opened):
                async for _ in self._turns.watch(opened.turn.id):
                    pass
            title = str(await self._services.durable.step("title", lambda: self._ask(opened)))
            if not title:
                return {"status": "failed"}
            async with self._services.store.work() as work:
                is_set = await work.chats.set_title(conversation, title, instead_of=str(payload["title"]))
            if is_set:
                self._live.publish(conversation, TitleChanged(title))
            return {"status": "done" if is_set else "late"}
        finally:
            self._pending.discard(conversation)
            self._live.publish(conversation, TitleChanged(""))

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
