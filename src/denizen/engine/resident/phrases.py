"""What an agent says without a model: refusals, and the head of an answer to what was missed."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.attention import Refusal
from denizen.domain.message import Part, TextPart, join_text
from denizen.domain.prompt_messages import format_speaker

NOT_ALLOWED = "I may not talk with you here. Whoever runs me can add you with `/allow add`."
MAX_CHARS = 2000
"""Of one missed message."""
_SILENT = frozenset({Refusal.EXCHANGES, Refusal.MONEY, Refusal.TOO_OLD})


def refusal_text(refusal: Refusal, why: str = "") -> str:
    """Empty for refusals that are not spoken of: a talk among agents ends in silence."""
    if refusal in _SILENT:
        return ""
    return why or NOT_ALLOWED


def missed_parts(messages: Sequence[tuple[str, Sequence[Part]]], *, left_out: int = 0) -> tuple[Part, ...]:
    """Several missed messages, by author name and parts, as one question. Their files come behind the text. `left_out`
    are older ones that are not among them.
    """
    lines = [f"- {format_speaker(author)}: {join_text(parts).strip()[:MAX_CHARS]}" for author, parts in messages]
    if left_out:
        lines.insert(
            0, f"- ({left_out} older ones are left out. Say that whoever still needs an answer may ask again.)"
        )
    head = (
        "While you were away these messages were addressed to you. Answer all of them in one short reply, "
        "with a word of apology for the delay:"
    )
    files = [part for _, parts in messages for part in parts if not isinstance(part, TextPart)]
    return (TextPart("\n".join([head, *lines])), *files)
