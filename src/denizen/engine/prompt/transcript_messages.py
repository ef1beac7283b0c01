"""A transcript as messages: one for each block, the tail in runs, and at the end the agent's name for it to go on.

Runs end where an agent answered, so that each request begins with the bytes of the one before it: what a provider has
cached of that is read, not paid anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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


@dataclass(slots=True)
class TimeMarks:
    """The lines that tell the time, in the order of the transcript. The first names the zone. `before` is the time of
    the last line in front of which one could stand: none can in front of the model's own messages.
    """

    policy: TimestampPolicy | None
    before: datetime | None = None

    def tell(self, line: TranscriptLine) -> str:
        """Returns the mark in front of a line, empty where there is none."""
        mark = time_mark(self.policy, line.at, self.before) if self.policy else ""
        self.before = line.at
        return mark


@record
class TranscriptStyle:
    """How one agent is shown a transcript: as it is configured, and as its model can take it. The agents of a room
    share the blocks; what one of them reads follows from its manner, a block's lines and when the line before them was
    said, so it keeps its bytes while the blocks in front of it stay.
    """

    layout: TranscriptLayout = field(default_factory=TranscriptLayout)
    timestamps: TimestampPolicy | None = None
    can: Capabilities = field(default_factory=Capabilities)

    @property
    def separates(self) -> bool:
        """Where the cache is marked, each mark needs a message."""
        return self.layout.separate_blocks or self.can.cache_marks

    def join_lines(self, lines: Sequence[TranscriptLine], marks: TimeMarks) -> str:
        """Returns the lines as one text."""
        told = [text for line in lines for text in (marks.tell(line), self._line(line)) if text]
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
    marks = TimeMarks(manner.timestamps)
    messages = _closed(blocks, manner, marks)
    for place, run in enumerate(runs):
        stability = Stability.SESSION if place == len(runs) - 1 else Stability.TURN
        messages.append(_said(manner.join_lines(run, marks), "tail", stability))
    cue = TextPart(f"{own}:")
    if not manner.can.prefill:
        return [*messages, PromptMessage(Role.USER, (*extras, cue), "cue")]
    attached = [PromptMessage(Role.USER, tuple(extras), "cue")] if extras else []
    return [*messages, *attached, PromptMessage(Role.ASSISTANT, (cue,), "cue")]


def _said(text: str, kind: str, stability: Stability) -> PromptMessage:
    return PromptMessage(Role.USER, (TextPart(text),), kind, stability)


def _closed(
    blocks: Sequence[Sequence[TranscriptLine]], manner: TranscriptStyle, marks: TimeMarks
) -> list[PromptMessage]:
    """Together they grow at their end only."""
    texts = [manner.join_lines(lines, marks) for lines in blocks]
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
    marks = TimeMarks(manner.timestamps)
    messages = [each for lines in blocks for each in _turns(lines, own, manner, marks, "block", Stability.FOREVER)]
    for place, run in enumerate(runs):
        stability = Stability.SESSION if place == len(runs) - 1 else Stability.TURN
        messages += _turns(run, own, manner, marks, "tail", stability)
    if not messages or messages[-1].role is Role.ASSISTANT:
        return [*messages, PromptMessage(Role.USER, (*extras, TextPart(f"{own}:")), "cue")]
    return [*messages, PromptMessage(Role.USER, tuple(extras), "cue")] if extras else messages


def _turns(
    lines: Sequence[TranscriptLine],
    own: str,
    manner: TranscriptStyle,
    marks: TimeMarks,
    kind: str,
    stability: Stability,
) -> list[PromptMessage]:
    """Its last user message makes the promise: those of the model cannot be marked."""
    told: list[PromptMessage] = []
    for is_own, group in groupby(lines, lambda line: line.is_bot and line.name == own and line.event is None):
        part = list(group)
        if is_own:
            words = TextPart("\n".join(line_words(line) for line in part))
            told.append(PromptMessage(Role.ASSISTANT, (words,), kind))
        else:
            told.append(_said(manner.join_lines(part, marks), kind, Stability.TURN))
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
