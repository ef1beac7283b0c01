"""What tools can do on the platform on which they were called, in the name of the one who asked."""

from __future__ import annotations

from typing import Protocol

from denizen.domain.json import Json, JsonObject


class PlatformActions(Protocol):
    """Actions of the agent's account, each within what the asker and the account may both do at that moment."""

    async def act(self, action: str, /, **details: Json) -> JsonObject:
        """Does it, and returns what came of it. Which actions there are, and their details, is the platform's business.

        Raises NotAllowed for what the asker or the account may not do, and off platforms; NotFound for a person, room
        or message that is not there; InvalidInput for details that cannot be; Unavailable when the platform does not
        answer. Left alone, they become the tool's error result.
        """
        ...
