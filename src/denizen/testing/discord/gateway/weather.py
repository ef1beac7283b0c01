"""How well the gateway behaves: the faults that a test asks for, read by connections and sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass(slots=True)
class Weather:
    """`duplicates` maps names of events (None: any) to how many of the next ones come twice. While `holding`, events
    are numbered and kept, but do not leave. While `frozen`, nothing at all leaves and nothing is answered: the
    connection looks alive.
    """

    refusals: int = 0
    acks: bool = True
    holding: bool = False
    frozen: bool = False
    duplicates: dict[str | None, int] = field(default_factory=dict[str | None, int])
    heartbeat: timedelta = timedelta(milliseconds=41250)
    ack_delay_s: float = 0.02
    """An acknowledgement that came before discord.py has noted its heartbeat would look as if it had taken 41 s."""
    zombie_check: bool = False
    """Closes connections (4009) that were silent for one and a half intervals of the heartbeat."""

    def duplicates_next(self, name: str) -> bool:
        """Whether this event is to come twice. Uses up one of the duplicates."""
        for key in (name, None):
            if self.duplicates.get(key, 0) > 0:
                self.duplicates[key] -= 1
                return True
        return False
