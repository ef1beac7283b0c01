"""Taint: texts that a turn has read and that neither the owner nor the asker wrote, and what it may not do any more.
Pure.

A text from elsewhere may hold orders. Whether a model obeys them nobody knows; so a turn that has read one does what
others could gain from only after a human has looked at it. Labels are never taken off a turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from denizen.domain.json import Json
from denizen.domain.message import FilePart, ImagePart, Message, Part, Role, TextPart
from denizen.domain.own_words import is_own_statement
from denizen.domain.prompt import PromptMessage
from denizen.domain.tool import Effect, Origin, Taint, Tier, ToolCall, ToolSpec
from denizen.domain.verdict import CallOutcome, Decision

QUOTED = "<untrusted "
"""Begins what stands in a message as data, such as the output of a configured command (`denizen.skill.context`)."""

META = "taint"
"""In the meta of a stored message: the labels of what was read when it was written."""

_DOINGS = {
    Effect.MEMORY: "writes something down for later",
    Effect.SCHEDULE: "plans something for later",
    Effect.REVEAL: "shows what is secret",
}
_SOURCES = {
    Taint.WEB: "web pages",
    Taint.MAIL: "mail",
    Taint.DOCUMENT: "documents",
    Taint.OTHERS: "what other people wrote",
    Taint.TOOL: "results of outside tools",
}


def tells_own_fact(spec: ToolSpec, call: ToolCall, taint: frozenset[Taint], said: str, name: str) -> bool:
    """Whether the call writes down what the asker, who is called `name`, has just `said` of themselves, word for word.
    Then it is the asker's own doing, although other people's words were read too. A page, a document or a result of a
    tool may have been what the asker repeats, so behind these it does not count.
    """
    field, properties = spec.flow.statement, spec.parameters.get("properties")
    text = call.args.get(field)
    if not field or not isinstance(text, str) or not isinstance(properties, Mapping) or not taint <= {Taint.OTHERS}:
        return False
    if spec.flow.effects != frozenset({Effect.MEMORY}) or call.origin is not Origin.MODEL:
        return False
    usual = {name: schema.get("default", "") for name, schema in properties.items() if isinstance(schema, Mapping)}
    others = {name: value for name, value in call.args.items() if name != field}
    return others.items() <= usual.items() and is_own_statement(text, said, name)


def find_risk(spec: ToolSpec, tier: Tier, foreign: str) -> str:
    """Returns what a tainted turn may not do by itself with this call, in words; empty when it may do all of it.
    `foreign` is a destination beyond the known ones.
    """
    if foreign:
        return f"sends to {foreign}"
    for effect, doing in _DOINGS.items():
        if effect in spec.flow.effects:
            return doing
    return "is of the highest risk" if tier is Tier.DANGEROUS else ""


def find_call_taint(spec: ToolSpec, outcome: CallOutcome) -> frozenset[Taint]:
    """Returns the taint that a call itself brings in: all that its tool reads, but none where it did not run, or where
    the result is the tool's own text.
    """
    has_read = outcome.verdict.decision is Decision.APPROVE and not outcome.result.is_own
    return spec.flow.reads if has_read else frozenset()


def describe_taint(taint: Iterable[Taint]) -> str:
    return ", ".join(_SOURCES[label] for label in sorted(taint))


def find_part_taint(parts: Iterable[Part]) -> frozenset[Taint]:
    """Files and pictures were made by somebody, whoever attached them; what is quoted as data, by a program."""
    taint: set[Taint] = set()
    for part in parts:
        if isinstance(part, FilePart | ImagePart):
            taint.add(Taint.DOCUMENT)
        elif isinstance(part, TextPart) and QUOTED in part.text:
            taint.add(Taint.TOOL)
    return frozenset(taint)


def find_message_taint(message: Message) -> frozenset[Taint]:
    """Returns the taint of a message of a session, whoever asks."""
    return taint_from_json(message.meta.get(META)) | find_part_taint(message.parts)


def find_prompt_taint(messages: Iterable[PromptMessage], asker: str) -> frozenset[Taint]:
    """Returns the taint of the messages that a model is to read. `asker` is the platform's id of the one who asks now;
    what others have said to the agent before is foreign too.
    """
    taint: frozenset[Taint] = frozenset()
    for message in messages:
        taint |= message.taint | find_part_taint(message.parts)
        if message.role is Role.USER and message.author not in ("", asker):
            taint |= {Taint.OTHERS}
    return taint


def with_taint(message: PromptMessage, *labels: Taint) -> PromptMessage:
    return replace(message, taint=message.taint | frozenset(labels))


def taint_to_json(taint: Iterable[Taint]) -> list[Json]:
    return [label.value for label in sorted(taint)]


def taint_from_json(value: Json) -> frozenset[Taint]:
    """A label that is not known (any more) counts as the result of an outside tool."""
    if value is None:
        return frozenset()
    known = {label.value for label in Taint}
    labels = value if isinstance(value, list) else [value]
    return frozenset(Taint(str(label)) if label in known else Taint.TOOL for label in labels)
