"""Whether a request to a model begins with the bytes of the one before it, and if not, what broke first.

Works on bodies as they went over the wire (`denizen.testing.model_server`), Anthropic's and OpenAI's. A provider reads
from its cache what an earlier request had up to its last mark; where there are no marks, up to what only that request
showed: notes in brackets and a participant's cue, which stand last.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

Body = Mapping[str, Any]
_PASSING = re.compile(r"\[(?!Today is [^]]*\]\n)|[^\n:]{1,40}:$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """`name` says where it stands, for people; `is_marked` that the provider keeps the prompt up to its end."""

    name: str
    text: str
    is_marked: bool = False
    is_passing: bool = False


def split_prompt(body: Body, segments: Mapping[str, str]) -> list[PromptPiece]:
    """Tools, system prompt, messages; `segments` has the names of the system's texts."""
    tools = [_piece(f"tool '{_tool_name(tool)}'", tool) for tool in body.get("tools") or []]
    system = [
        _piece(f"system segment '{segments.get(str(block.get('text')), place)}'", block)
        for place, block in enumerate(_blocks(body.get("system")))
    ]
    return [*tools, *system, *_split_messages(body, segments)]


def _split_messages(body: Body, segments: Mapping[str, str]) -> Iterator[PromptPiece]:
    for place, message in enumerate(body["messages"]):
        where = f"message {place} ({message['role']})"
        calls = message.get("tool_calls") or []
        for part, block in enumerate([*_blocks(message.get("content")), *calls]):
            name = segments.get(str(block.get("text")))
            if message["role"] == "system":
                yield _piece(f"system segment '{name or place}'", block)
            else:
                yield _piece(f"{where}, part {part}", {"role": message["role"], **block})


def _piece(name: str, block: Body) -> PromptPiece:
    bare = {key: value for key, value in block.items() if key != "cache_control"}
    text = str(bare.get("text", ""))
    return PromptPiece(name, json.dumps(bare), "cache_control" in json.dumps(block), bool(_PASSING.match(text)))


def _blocks(content: object) -> Sequence[Body]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _tool_name(tool: Body) -> str:
    return str(tool.get("name") or tool["function"]["name"])


def find_stable_pieces(body: Body, segments: Mapping[str, str]) -> list[PromptPiece]:
    """The pieces with which the next request of the conversation has to begin."""
    pieces = split_prompt(body, segments)
    marks = [place for place, piece in enumerate(pieces) if piece.is_marked]
    if marks:
        return pieces[: marks[-1] + 1]
    while pieces and pieces[-1].is_passing:
        pieces.pop()
    return pieces


def find_first_change(earlier: Body, later: Body, segments: Mapping[str, str] | None = None) -> str:
    """The first piece that the later request has otherwise, or not at all; empty when there is none."""
    names = segments or {}
    found = split_prompt(later, names)
    for place, old in enumerate(find_stable_pieces(earlier, names)):
        new = found[place] if place < len(found) else None
        if new is None or new.text != old.text:
            return f"{old.name} broke: {old.text[:200]} became {new.name + ': ' + new.text[:200] if new else 'nothing'}"
    return ""


def assert_stable_prefixes(bodies: Sequence[Body], segments: Mapping[str, str] | None = None) -> None:
    """Each request begins with the one before it."""
    for number, (earlier, later) in enumerate(pairwise(bodies), 2):
        broken = find_first_change(earlier, later, segments)
        assert not broken, f"request {number}: {broken}"
