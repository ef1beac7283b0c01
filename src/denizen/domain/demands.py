"""Demands of whoever asks on one answer: tools that the asker runs, the form of the answer, where it stops, sampling.

Programs that speak to a model make them (the OpenAI-compatible API). They are kept with the turn, so that one that is
taken up again keeps to them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from denizen.domain.agent import SamplingSettings
from denizen.domain.ids import CallId, TurnId
from denizen.domain.json import Json, JsonObject
from denizen.domain.message import ToolCallPart
from denizen.domain.record import record
from denizen.domain.tool import ToolSpec

DEMANDS = "demands"
"""The key in the options of a turn."""

_SAMPLING = ("temperature", "top_p", "seed")
_CALL_ID = re.compile(r"(turn_[0-9a-f]{24})_(.+)", re.DOTALL)


@record
class ClientTools:
    """Tools that the asker runs. A call of one ends the turn; the asker answers it with the next message.

    `is_required`: one of these must be called at once, and the agent's own are not offered. `is_parallel`: a reply may
    call several. The arguments of those in `strict` have to fit their schema.
    """

    specs: tuple[ToolSpec, ...]
    is_required: bool = False
    is_parallel: bool = True
    strict: frozenset[str] = frozenset()

    def select_calls(self, calls: Iterable[ToolCallPart]) -> tuple[ToolCallPart, ...]:
        """Returns the calls of these tools: one, unless several are allowed."""
        theirs = tuple(call for call in calls if call.tool in self.names)
        return theirs if self.is_parallel else theirs[:1]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(spec.name for spec in self.specs)


NO_TOOLS = ClientTools(())


@record
class OutputForm:
    """The answer has to be a JSON object that fits the schema."""

    schema: JsonObject
    name: str = "output"


@record(kw_only=True)
class AnswerDemands:
    """The answer ends before the first of the texts in `stop`. What `sampling` sets is used as it is, or refused."""

    sampling: SamplingSettings = field(default_factory=SamplingSettings)
    stop: tuple[str, ...] = ()
    output: OutputForm | None = None
    tools: ClientTools = NO_TOOLS

    def apply_sampling(self, usual: SamplingSettings) -> SamplingSettings:
        """Returns the agent's sampling with what the asker insists on."""
        wanted = {name: value for name in _SAMPLING if (value := getattr(self.sampling, name)) is not None}
        # Some models take none but the usual 1, which is nothing to insist on.
        demanded = frozenset(name for name, value in wanted.items() if name == "seed" or value != 1)
        return SamplingSettings(
            temperature=cast("float | None", wanted.get("temperature", usual.temperature)),
            top_p=cast("float | None", wanted.get("top_p", usual.top_p)),
            seed=cast("int | None", wanted.get("seed", usual.seed)),
            demanded=demanded,
        )


def demands_to_json(demands: AnswerDemands) -> JsonObject:
    """Returns the demands for the options of a turn; empty where there are none."""
    rows: JsonObject = {name: getattr(demands.sampling, name) for name in _SAMPLING}
    rows["stop"] = list(demands.stop) or None
    if demands.output is not None:
        rows["output"] = {"schema": demands.output.schema, "name": demands.output.name}
    if demands.tools.specs:
        rows["tools"] = {
            "specs": [
                {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
                for spec in demands.tools.specs
            ],
            "is_required": demands.tools.is_required,
            "is_parallel": demands.tools.is_parallel,
            "strict": sorted(demands.tools.strict),
        }
    return {name: value for name, value in rows.items() if value is not None}


def demands_from_json(options: Mapping[str, Json]) -> AnswerDemands:
    """Returns the demands in the options of a turn."""
    rows = cast("dict[str, Any]", options.get(DEMANDS) or {})
    output, tools = rows.get("output"), rows.get("tools")
    return AnswerDemands(
        # Turns of before have a temperature only, beside the other options.
        sampling=SamplingSettings(
            rows.get("temperature", options.get("temperature")), rows.get("top_p"), rows.get("seed")
        ),
        stop=tuple(rows.get("stop") or ()),
        output=OutputForm(output["schema"], output["name"]) if output else None,
        tools=ClientTools(
            tuple(
                ToolSpec(row["name"], row["description"], row["parameters"], source="client") for row in tools["specs"]
            ),
            tools["is_required"],
            tools["is_parallel"],
            frozenset(tools["strict"]),
        )
        if tools
        else NO_TOOLS,
    )


def write_call_id(turn: TurnId, call: CallId) -> str:
    """Returns the id of a call as a client gets it, which tells the turn that made the call."""
    return f"{turn}_{call}"


def read_call_id(text: str) -> tuple[TurnId | None, CallId]:
    """Returns the turn that made a call, and the call's id there; None for the call of somebody else's model."""
    found = _CALL_ID.fullmatch(text)
    return (TurnId(found[1]), CallId(found[2])) if found else (None, CallId(text))


@dataclass(slots=True)
class StopFilter:
    """For one answer. `feed` the pieces as they come; then `finish`. Once `is_hit`, nothing follows."""

    stop: tuple[str, ...]
    is_hit: bool = False
    _held: str = ""

    def feed(self, piece: str) -> str:
        """Returns the text that may be shown now: what may become one of the texts is held back."""
        if self.is_hit:
            return ""
        text = self._held + piece
        ends = [at for each in self.stop if (at := text.find(each)) >= 0]
        if ends:
            self.is_hit, self._held = True, ""
            return text[: min(ends)]
        begun = (each[:size] for each in self.stop for size in range(1, len(each)))
        held = max((len(each) for each in begun if text.endswith(each)), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> str:
        """Returns the text that was held back."""
        held, self._held = self._held, ""
        return held
