"""Facts about people as an agent remembers them, and questions that mean one of them in other words.

Made of templates: each kind of fact has several forms and several questions, which share its person's name and often
no other word. Facts of one kind are told of everybody, so that only the name tells them apart, and the name stands in
all facts of a person. `load_locomo` reads the published LoCoMo data set instead, where somebody has the file.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PEOPLE = (
    "Ana",
    "Bob",
    "Chidi",
    "Dana",
    "Emeka",
    "Fatima",
    "Goran",
    "Hana",
    "Ivan",
    "Jo",
    "Kenji",
    "Lucía",
    "Mira",
    "Noor",
)

KINDS = Path(__file__).with_suffix(".txt")
"""Three lines a kind: forms of the fact, questions, and the values, one for each person."""


NAMING = ("What was it that {p} said about {v}?", "{p} and {v}, how was that?", "Tell me again about {v} and {p}.")
"""Questions that name the value."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """A question, whom it is about, and the keys of the facts of which one or more answer it."""

    question: str
    about: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class FactSet:
    """Facts by key, which stand in one memory, and questions about them."""

    name: str
    facts: Mapping[str, str]
    questions: Sequence[Recalled]

    def of_person(self, person: str) -> FactSet:
        """Returns what an agent remembers of one person."""
        facts = {key: text for key, text in self.facts.items() if key.startswith(f"{person}-")}
        return FactSet(person, facts, [each for each in self.questions if each.about == person])


def make_facts(seed: int = 7) -> FactSet:
    """A fact of each kind about each person, with two questions in other words and one that names what it tells of."""
    chosen = random.Random(seed)
    facts: dict[str, str] = {}
    questions: list[Recalled] = []
    for number, kind in enumerate(KINDS.read_text(encoding="utf-8").strip().split("\n\n")):
        forms, asked, values = kind.splitlines()
        of_people = values.split(", ")
        chosen.shuffle(of_people)
        for person, value in zip(PEOPLE, of_people, strict=True):
            key = f"{person}-{number}"
            text = chosen.choice(forms.split(" | ")).format(p=person, v=value)
            facts[key] = text[0].upper() + text[1:]
            questions += [
                Recalled(question.format(p=person), person, frozenset({key}))
                for question in chosen.sample(asked.split(" | "), 2)
            ]
            named = chosen.choice(NAMING).format(p=person, v=value)
            questions.append(Recalled(named, person, frozenset({key})))
    keys = list(facts)
    chosen.shuffle(keys)
    return FactSet("made up", {key: facts[key] for key in keys}, questions)


def load_locomo(path: Path) -> Iterator[FactSet]:
    """Reads `locomo10.json`: conversations of two people over months, whose messages are the facts, and questions with
    the messages that answer them. Questions that no message answers are left out.
    """
    loaded: Any = json.loads(path.read_text(encoding="utf-8"))
    for number, sample in enumerate(loaded["conversations"] if isinstance(loaded, dict) else loaded):
        talk = sample.get("conversation", sample)
        facts = {
            said["dia_id"]: _tell(said, str(talk.get(f"{session}_date_time", "")))
            for session in sorted(talk, key=_session_number)
            if re.fullmatch(r"session_\d+", session)
            for said in talk[session]
        }
        questions = [
            Recalled(asked["question"], "", keys)
            for asked in sample["qa"]
            if (keys := frozenset(_list_evidence(asked)) & facts.keys())
        ]
        yield FactSet(str(sample.get("sample_id", number)), facts, questions)


def _session_number(name: str) -> int:
    return int(re.sub(r"\D", "", name) or 0)


def _tell(said: Mapping[str, str], when: str) -> str:
    """A message as an agent would keep it: who said it, and what a picture showed."""
    del when  # the time of a memory is not searched
    shown = f" [picture: {said['blip_caption']}]" if said.get("blip_caption") else ""
    return f"{said['speaker']}: {said['text']}{shown}"


def _list_evidence(asked: Mapping[str, Any]) -> list[str]:
    """The ids of messages; some stand several in one text."""
    return re.findall(r"D\d+:\d+", " ".join(asked.get("evidence", ())))
