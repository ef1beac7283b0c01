"""A transcript as messages: one for each block, the tail in runs, and at the end the agent's name for it to go on.

Runs end where an agent answered, so that each request begins with the bytes of the one before it: what a provider has
cached of that is read, not paid anew.
"""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.message import Part, Role, TextPart
from denizen.domain.prompt import PromptMessage, Stability
from denizen.domain.transcript import Line
from denizen.engine.prompt.transcript.blocks import text_of_lines


def make_messages(
    blocks: Sequence[Sequence[Line]], tail: Sequence[Line], extras: Sequence[Part], own: str, *, prefill: bool
) -> list[PromptMessage]:
    """`extras` are pictures and files of the question, which only its own turn shows. With `prefill` the model goes on
    from its name; otherwise the name is the last line that it reads (inventory CW2).
    """
    messages = [
        PromptMessage(Role.USER, (TextPart(text_of_lines(lines)),), "block", Stability.FOREVER) for lines in blocks
    ]
    runs = _runs(tail)
    for place, run in enumerate(runs):
        stability = Stability.SESSION if place == len(runs) - 1 else Stability.TURN
        messages.append(PromptMessage(Role.USER, (TextPart(text_of_lines(run)),), "tail", stability))
    cue = TextPart(f"{own}:")
    if not prefill:
        return [*messages, PromptMessage(Role.USER, (*extras, cue), "cue")]
    attached = [PromptMessage(Role.USER, tuple(extras), "cue")] if extras else []
    return [*messages, *attached, PromptMessage(Role.ASSISTANT, (cue,), "cue")]


def _runs(tail: Sequence[Line]) -> list[list[Line]]:
    answered = {line.answers for line in tail if line.answers}
    runs: list[list[Line]] = []
    is_open = False
    for place, line in enumerate(tail):
        if not is_open:
            runs.append([])
        runs[-1].append(line)
        follows = tail[place + 1] if place + 1 < len(tail) else None
        is_asked = not line.is_bot and follows is not None and follows.is_bot and not follows.answers
        is_open = line.post not in answered and not is_asked
    return runs
