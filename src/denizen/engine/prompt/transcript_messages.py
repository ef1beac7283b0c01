"""A transcript as messages: one for each block, the tail in runs, and at the end the agent's name for it to go on.

Runs end where an agent answered, so that each request begins with the bytes of the one before it: what a provider has
cached of that is read, not paid anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from datetime import datetime
from itertools import groupby

from denizen.domain.agent import TimestampPolicy, TranscriptLayout
from denizen.domain.impersonation import SpeakerNames
from denizen.domain.message import Part, Role, TextPart, ThinkingPart, join_text
from denizen.domain.prompt import PromptMessage, Stability
from denizen.domain.prompt_messages import time_mark
from denizen.domain.record import record
from denizen.domain.transcript import TranscriptLine
from denizen.ports.model import Capabilities, ModelReply


@record
class TranscriptStyle:
    """How one agent is shown a transcript: as it is configured, and as its model can take it. The agents of a room
    share the blocks; what one of them reads follows from a block's lines and its manner alone, so it keeps its bytes.
    """

    layout: TranscriptLayout = field(default_factory=TranscriptLayout)
    timestamps: TimestampPolicy | None = None
    can: Capabilities = field(default_factory=Capabilities)

    @property
    def separates(self) -> bool:
        """Where the cache is marked, each mark needs a message."""
        return self.layout.separate_blocks or self.can.cache_marks

    def join_lines(self, lines: Sequence[TranscriptLine], before: datetime | None = None) -> str:
        """Returns the lines as one text. `before` is the time of the line that the model has read last; None at the
        beginning of a block.
        """
        told: list[str] = []
        for line in lines:
            mark = time_mark(self.timestamps, line.at, before) if self.timestamps else ""
            told += [mark, self._line(line)] if mark else [self._line(line)]
            before = line.at
        return ("\n\n" if self.layout.vertical else "\n").join(told)

    def _line(self, line: TranscriptLine) -> str:
        if self.layout.vertical and line.event is None:
            return f"{line.name}:\n{line_words(line)}"
        return line.text


def line_words(line: TranscriptLine) -> str:
    """Returns the words of a line without its speaker."""
    return line.text.removeprefix(f"{line.name}: ")


def make_messages(
    blocks: Sequence[Sequence[TranscriptLine]],
    tail: Sequence[TranscriptLine],
    extras: Sequence[Part],
    own: str,
    manner: TranscriptStyle,
) -> list[PromptMessage]:
    """`extras` are pictures and files of the question, which only its own turn shows. With prefill the model goes on
    from its name; otherwise the name is the last line that it reads. As turns it needs neither.
    """
    runs = _runs(tail)
    if manner.layout.turns:
        return _as_turns(blocks, runs, extras, own, manner)
    messages = _closed(blocks, manner)
    before: datetime | None = None
    for place, run in enumerate(runs):
        stability = Stability.SESSION if place == len(runs) - 1 else Stability.TURN
        messages.append(_said(manner.join_lines(run, before), "tail", stability))
        before = run[-1].at
    cue = TextPart(f"{own}:")
    if not manner.can.prefill:
        return [*messages, PromptMessage(Role.USER, (*extras, cue), "cue")]
    attached = [PromptMessage(Role.USER, tuple(extras), "cue")] if extras else []
    return [*messages, *attached, PromptMessage(Role.ASSISTANT, (cue,), "cue")]


def _said(text: str, kind: str, stability: Stability) -> PromptMessage:
    return PromptMessage(Role.USER, (TextPart(text),), kind, stability)


def _closed(blocks: Sequence[Sequence[TranscriptLine]], manner: TranscriptStyle) -> list[PromptMessage]:
    """Together they grow at their end only."""
    texts = [manner.join_lines(lines) for lines in blocks]
    if manner.separates or len(texts) < 2:
        return [_said(text, "block", Stability.FOREVER) for text in texts]
    return [_said("\n".join(texts), "block", Stability.SESSION)]


def _as_turns(
    blocks: Sequence[Sequence[TranscriptLine]],
    runs: Sequence[Sequence[TranscriptLine]],
    extras: Sequence[Part],
    own: str,
    manner: TranscriptStyle,
) -> list[PromptMessage]:
    """Puts the agent's own lines into messages of its own, without its name; the list never ends with one."""
    messages = [each for lines in blocks for each in _turns(lines, own, manner, "block", Stability.FOREVER)]
    for place, run in enumerate(runs):
        messages += _turns(run, own, manner, "tail", Stability.SESSION if place == len(runs) - 1 else Stability.TURN)
    if not messages or messages[-1].role is Role.ASSISTANT:
        return [*messages, PromptMessage(Role.USER, (*extras, TextPart(f"{own}:")), "cue")]
    return [*messages, PromptMessage(Role.USER, tuple(extras), "cue")] if extras else messages


def _turns(
    lines: Sequence[TranscriptLine], own: str, manner: TranscriptStyle, kind: str, stability: Stability
) -> list[PromptMessage]:
    """Its last user message makes the promise: those of the model cannot be marked."""
    told: list[PromptMessage] = []
    for is_own, group in groupby(lines, lambda line: line.is_bot and line.name == own and line.event is None):
        part = list(group)
        if is_own:
            words = TextPart("\n".join(line_words(line) for line in part))
            told.append(PromptMessage(Role.ASSISTANT, (words,), kind))
        else:
            told.append(_said(manner.join_lines(part), kind, Stability.TURN))
    last = max((place for place, each in enumerate(told) if each.role is Role.USER), default=-1)
    return [replace(each, stability=stability) if place == last else each for place, each in enumerate(told)]


def _runs(tail: Sequence[TranscriptLine]) -> list[list[TranscriptLine]]:
    answered = {line.answers for line in tail if line.answers}
    runs: list[list[TranscriptLine]] = []
    is_open = False
    for place, line in enumerate(tail):
        if not is_open:
            runs.append([])
        runs[-1].append(line)
        follows = tail[place + 1] if place + 1 < len(tail) else None
        is_asked = not line.is_bot and follows is not None and follows.is_bot and not follows.answers
        is_open = line.post not in answered and not is_asked
    return runs


def filter_impersonation(reply: ModelReply, voice: SpeakerNames) -> ModelReply:
    """Without the echo of its name, and cut where it speaks for others; what it called after that is cut too."""
    text, guard = join_text(reply.parts), voice.guard()
    left = guard.feed(text) + guard.finish()
    if left == text:
        return reply
    thought = tuple(part for part in reply.parts if isinstance(part, ThinkingPart))
    rest = tuple(part for part in reply.parts if not isinstance(part, ThinkingPart | TextPart))
    said = (TextPart(left),) if left else ()
    if guard.is_hit:
        return replace(reply, parts=(*thought, *said), finish_reason="stop")
    return replace(reply, parts=(*thought, *said, *rest))
