"""Where a prompt has what reads otherwise next time: memories that fit a message, talk around it, notes about tools.

Providers read the beginning of a prompt from their cache as far as its bytes are those of an earlier one. So whatever
may change stands behind what stays. Such notes are made for one turn, by `gather`, and stored nowhere: what was
forgotten where it came from is gone from here too. Made with `assemble.passing`, which marks them as such.

    loop          behind everything, also behind the results of tools: read anew with each step, never written to a
                  cache, and what stands before it is there again in the next turn
    planning      in front of the question, which small models answer best when it comes last
    participants  between the talk and the cue: what follows there is of this turn only
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from denizen.domain.prompt import PromptMessage, Stability

CUE = "cue"
"""The kind of the messages behind a transcript that make a participant speak."""


def behind(
    messages: Sequence[PromptMessage], notes: Sequence[PromptMessage], promise: Stability = Stability.SESSION
) -> list[PromptMessage]:
    """The notes last; up to them the prompt keeps its bytes for as long as `promise` says."""
    if not messages:
        return list(notes)
    last = messages[-1]
    return [*messages[:-1], replace(last, stability=min(last.stability, promise)), *notes]


def before_question(history: Sequence[PromptMessage], notes: Sequence[PromptMessage]) -> list[PromptMessage]:
    """The notes in front of the last message; what was said before it keeps its bytes."""
    if not notes:
        return behind(history, ())
    return [*behind(history[:-1], notes), *history[-1:]]


def before_cue(history: Sequence[PromptMessage], notes: Sequence[PromptMessage]) -> list[PromptMessage]:
    """The notes behind the talk that a participant reads."""
    end = next((place for place, message in enumerate(history) if message.kind == CUE), len(history))
    return [*history[:end], *notes, *history[end:]]
