"""A relay between processes of a fleet, whose words are missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from denizen.domain.errors import DenizenError
from denizen.domain.events import TurnEvent
from denizen.domain.ids import AgentName, TurnId


@dataclass
class DeafRelay:
    """A relay whose words nobody hears, unless `on_cancel` does."""

    runs_turns: bool
    on_cancel: Callable[[TurnId], object] = lambda _turn: None
    cancelled: list[TurnId] = field(default_factory=list[TurnId])

    def watch(self, turn_id: TurnId, *, on: bool) -> None: ...

    def is_watched(self, turn_id: TurnId) -> bool:
        return False

    def publish(self, turn_id: TurnId, sign: TurnEvent | DenizenError) -> None: ...

    def cancel(self, turn_id: TurnId) -> None:
        self.cancelled.append(turn_id)
        self.on_cancel(turn_id)

    def wake_outbox(self, platform: str, account: AgentName) -> None: ...
