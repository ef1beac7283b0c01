"""What the tools of a turn were asked and gave, for what its answer says of them. Filled by `steps`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from denizen.domain.json import Json
from denizen.domain.message import ToolCallPart, ToolResultPart
from denizen.domain.prompt import PromptMessage
from denizen.engine.knowledge.citations import Seen


@dataclass(slots=True)
class Evidence:
    """What the tools of a turn were asked and gave. `searches` counts those of documents, `found` their passages.
    `history` is what was said before it, as far as the agent still has it before it.
    """

    history: Sequence[PromptMessage] = ()
    results: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])
    searches: int = 0
    found: int = 0

    def add(self, args: Mapping[str, Json], text: str, data: Json) -> None:
        """`data` of a search has the number of passages that it found, as `found`."""
        self.results.append(text)
        self.calls.append(_written(args))
        found = data.get("found") if isinstance(data, dict) else None
        if isinstance(found, int):
            self.searches += 1
            self.found += found

    def seen(self) -> Seen:
        """Until now, in this turn and in the history."""
        parts = [part for message in self.history for part in message.parts]
        earlier = [part.text for part in parts if isinstance(part, ToolResultPart)]
        asked = [_written(part.args) for part in parts if isinstance(part, ToolCallPart)]
        return Seen([*earlier, *self.results], [*asked, *self.calls])


def _written(args: Mapping[str, Json]) -> str:
    return json.dumps(args, ensure_ascii=False)
