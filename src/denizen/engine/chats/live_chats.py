"""Events of chats besides the events of their turns, for those who have one open in this process."""

from __future__ import annotations

from denizen.domain.ids import ConversationId, TurnId
from denizen.domain.record import record
from denizen.engine.events.broadcast import Broadcast


@record
class MessageTaken:
    """A message was taken, and its turn was opened."""

    turn_id: TurnId


@record
class TitleChanged:
    """The chat has another title. An empty one says that none will be made any more."""

    title: str


@record
class ChatChanged:
    """Something else about the chat is different: what it shows has to be read again. `is_removed`: it is gone."""

    is_removed: bool = False


ChatEvent = MessageTaken | TitleChanged | ChatChanged

LiveChats = Broadcast[ConversationId, ChatEvent]
"""Who watches which chat."""
