"""Reads LoCoMo, long conversations of two people with questions about them, from its file `locomo10.json`.

The file is Snap Research's, under a licence that does not let others use it commercially, so it is never part of this
repository: whoever has it gives its path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

from denizen.domain.errors import InvalidInput

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


class QuestionKind(IntEnum):
    """The kinds of questions, as the file numbers them."""

    MULTI_HOP = 1
    TEMPORAL = 2
    OPEN_DOMAIN = 3
    SINGLE_HOP = 4
    ADVERSARIAL = 5
    """It asks for something that was never said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocomoTurn:
    """A message of one person. `id` is the file's, like `D3:12`; `caption` tells what a picture shows."""

    id: str
    session: int
    at: datetime
    speaker: str
    text: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """`evidence` are the ids of the turns that answer it, and that the sample has."""

    text: str
    answer: str
    evidence: tuple[str, ...]
    kind: QuestionKind


@dataclass(frozen=True, slots=True)
class LocomoSample:
    """One long conversation: its turns in order, and what is asked of it."""

    id: str
    turns: tuple[LocomoTurn, ...]
    questions: tuple[LocomoQuestion, ...]

    @property
    def speakers(self) -> list[str]:
        """Returns the people in it, in the order in which they speak."""
        return list(dict.fromkeys(turn.speaker for turn in self.turns))

    @property
    def answerable(self) -> list[LocomoQuestion]:
        """Returns the questions that some of the turns answer."""
        return [each for each in self.questions if each.evidence and each.kind is not QuestionKind.ADVERSARIAL]


def read_locomo(path: Path) -> list[LocomoSample]:
    """Returns the samples of the file in order. Raises InvalidInput when it is not LoCoMo's."""
    try:
        return [_read_sample(number, sample) for number, sample in enumerate(json.loads(path.read_bytes()), start=1)]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InvalidInput(
            f"{path} cannot be read as LoCoMo: {type(error).__name__}: {error}.",
            code="bad_locomo",
            fix="Give the path of `locomo10.json` as Snap Research publishes it.",
        ) from error


def _read_sample(number: int, sample: Mapping[str, Any]) -> LocomoSample:
    turns = tuple(_read_turns(sample["conversation"]))
    known = {turn.id for turn in turns}
    questions = tuple(
        LocomoQuestion(
            str(each["question"]),
            str(each.get("answer", "")),
            tuple(key for key in dict.fromkeys(_read_evidence(each.get("evidence", ()))) if key in known),
            QuestionKind(each["category"]),
        )
        for each in sample["qa"]
    )
    return LocomoSample(str(sample.get("sample_id", number)), turns, questions)


def _read_turns(conversation: Mapping[str, Any]) -> Iterator[LocomoTurn]:
    sessions = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for session in sessions:
        said = conversation[f"session_{session}"]
        if not said:
            continue
        at = _read_time(conversation[f"session_{session}_date_time"])
        for turn in said:
            yield LocomoTurn(
                id=turn["dia_id"],
                session=session,
                at=at,
                speaker=turn["speaker"],
                text=turn["text"],
                caption=turn.get("blip_caption", ""),
            )


def _read_evidence(given: object) -> Iterator[str]:
    """Yields ids as turns have them: the file also has `D8:6; D9:17` in one, `D:11:26`, and `D30:05`."""
    for session, number in _EVIDENCE.findall(" ".join(map(str, given)) if isinstance(given, list) else str(given)):
        yield f"D{int(session)}:{int(number)}"


def _read_time(text: str) -> datetime:
    """Reads a session's time, like `1:56 pm on 8 May, 2023`."""
    return datetime.strptime(text.strip(), "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
