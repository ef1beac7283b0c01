"""Citations of answers: how many false ones are shown, and how many right ones are taken out.

python -m benchmarks citations

The answers are in `benchmarks.citation_corpus`; any further word lists those that come out wrong. Beside it stands the
rule of before: places in square brackets only, reading found in what tools printed, and of the sentence only a
quotation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from benchmarks.citation_corpus import BEYOND, DOCUMENTS, Case, list_cases
from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, DocumentRef
from denizen.domain.cited_text import UNPROVED, CitationMark, CitationReader
from denizen.domain.ids import AgentName
from denizen.engine.configuration.generation import no_own_files
from denizen.engine.knowledge.citations import CitationProver, ReadPlaces, TurnEvidence, UnrecordedResults
from denizen.engine.knowledge.proof import AnswerProver
from denizen.ports.source import DocumentText, Library

AGENT = AgentName("denizen")


class CorpusLibrary:
    """The documents of the corpus; of the library proofs ask for nothing else."""

    async def find_document(self, path: str, *, guild: str = "") -> DocumentText | None:
        del guild
        text = _TEXTS.get(path)
        return None if text is None else DocumentText(text)


_TEXTS: Mapping[str, str] = dict(DOCUMENTS.values())
LIBRARY = cast("Library", CorpusLibrary())


@dataclass(slots=True)
class CitationRates:
    """Counts of citations: right and wrong ones, and of each those that were shown as the other."""

    right: int = 0
    wrong: int = 0
    removed: list[Case] = field(default_factory=list[Case])
    """Right ones that were taken out."""
    shown: list[Case] = field(default_factory=list[Case])
    """Wrong ones that were shown."""

    def add(self, case: Case, found: str) -> None:
        """Compares verdicts in order; one that is missing was shown unmarked."""
        for at, expected in enumerate(case.marks):
            verdict = found[at] if at < len(found) else "+"
            self.right += expected == "+"
            self.wrong += expected == "-"
            if verdict != expected:
                (self.removed if expected == "+" else self.shown).append(case)
        # What is no citation and was marked.
        self.removed += [case] * found[len(case.marks) :].count("-")

    @property
    def removed_share(self) -> float:
        return len(self.removed) / self.right

    @property
    def shown_share(self) -> float:
        return len(self.shown) / self.wrong

    def tell(self, name: str) -> str:
        kept = self.right - len(self.removed)
        precision = kept / (kept + len(self.shown))
        return (
            f"  {name:16} wrong ones shown {self.shown_share:6.1%} of {self.wrong}   right ones taken out"
            f" {self.removed_share:6.1%} of {self.right}   precision {precision:.3f}  recall {kept / self.right:.3f}"
        )


async def judge(case: Case) -> str:
    """Returns the verdicts on the citations of an answer, in order."""
    evidence = make_evidence(case)
    prover = CitationProver(LIBRARY, AGENT, no_own_files, evidence.seen())
    reader = CitationReader()
    marks = [each for each in (*reader.feed(case.text), *reader.finish()) if isinstance(each, CitationMark)]
    return "".join([_sum_up(await prover.prove(mark)) for mark in marks])


async def show(case: Case, style: CitationFormat = CitationFormat.INLINE) -> str:
    """Returns the answer as people see it."""
    proofs = AnswerProver(LIBRARY).open(make_evidence(case), AGENT, style=style)
    return (await proofs.prove(case.text)).text


def make_evidence(case: Case) -> TurnEvidence:
    return TurnEvidence(question=case.question, results=[result for _, result in case.list_results()])


def _sum_up(told: Sequence[Citation]) -> str:
    if not told:
        return ""
    return "-" if any(each.doubt for each in told) else "+"


_MARK = re.compile(r"\[`?(?P<inside>[^\[\]\n`]{3,600})`?\]")
_PLACE = re.compile(
    r"(?P<path>[A-Za-z0-9_.-]+/[^:#]+\.[A-Za-z0-9]{1,5})"
    r"(?:(?::|#|, ?lines? )L?(?P<first>\d{1,7})(?: ?[-\u2013] ?L?(?P<last>\d{1,7}))?)?"
)
_QUOTED = re.compile(r"[\"\u201c\u201e\u00ab]([^\"\u201c\u201d\u201e\u00ab\u00bb\n]{20,600})[\"\u201d\u201c\u00bb]\s?$")


async def judge_as_before(case: Case) -> str:
    """Returns the verdicts of the rule of before."""
    told = list(case.list_results())
    seen = ReadPlaces(earlier=UnrecordedResults([each.text for _, each in told], [call for call, _ in told]))
    prover = CitationProver(LIBRARY, AGENT, no_own_files, seen)
    verdicts = ""
    for found in _MARK.finditer(case.text):
        places = [_PLACE.fullmatch(each.strip().removeprefix("./")) for each in found["inside"].split(";")]
        if not all(places):
            continue
        refs = [
            DocumentRef(each["path"], int(each["first"] or 0), int(each["last"] or each["first"] or 0))
            for each in places
            if each
        ]
        quoted = _QUOTED.search(case.text[: found.start()])
        claim = f'"{quoted[1]}"' if quoted else ""
        verdicts += _sum_up(await prover.prove(CitationMark(tuple(refs), claim)))
    return verdicts


async def measure() -> tuple[CitationRates, CitationRates]:
    """Returns the rates of the rule, and of the rule of before."""
    now, before = CitationRates(), CitationRates()
    for case in list_cases():
        now.add(case, await judge(case))
        before.add(case, await judge_as_before(case))
    return now, before


def main(wish: str = "") -> None:
    """Prints both rates beside those of the rule of before."""
    now, before = asyncio.run(measure())
    print(f"{len(list_cases())} answers; {UNPROVED} stands for what is taken out")
    print(f"(and {len(BEYOND)} false ones that no rule of this kind can tell, which count in no rate)")
    print(now.tell("the rule"))
    print(before.tell("the rule before"))
    for name, cases in (("taken out", now.removed), ("shown", now.shown)) if wish else ():
        for case in cases:
            print(f"  {name}: {case.text}")
