"""The texts of a turn with what they cite proved, as they are streamed and as they stand in the end.

What is not proved is taken out and marked (`domain/cited_text`); nothing that goes wrong here keeps an answer back. A
stream and the text at its end are written in the same way, so people keep what they have seen. `steps` streams, `turn`
has the answer proved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, CitationFault
from denizen.domain.cited_text import CitationMark, CitationReader, CitationWriter, UnmarkedText
from denizen.domain.ids import AgentName
from denizen.engine.configuration.generation import ReadOwn, no_own_files
from denizen.engine.knowledge.citations import CitationProver, ReadPlaces, TurnEvidence
from denizen.ports.source import Library

MAX_CITED = 50
"""The limit of one answer; further citations are not looked up, and so not proved."""


@dataclass(frozen=True, slots=True)
class ProvedAnswer:
    """As people see it. `is_unknown`: the agent has said that its documents do not answer."""

    text: str
    citations: tuple[Citation, ...] = ()
    is_unknown: bool = False


class TextProof(Protocol):
    """One text on its way to people, in pieces."""

    async def feed(self, text: str) -> str:
        """Takes a piece of the text and returns what may be shown now."""
        ...

    async def finish(self) -> str:
        """Returns the rest of the text."""
        ...


class TurnProofs:
    """The proofs of one turn's texts. Without a library nothing is proved."""

    def __init__(self, evidence: TurnEvidence) -> None:
        self.evidence = evidence

    def begin(self) -> TextProof:
        """For a text that comes piece by piece, by what the agent has read until now."""
        return _UnprovedText()

    async def prove(self, text: str) -> ProvedAnswer:
        return ProvedAnswer(text)


class AnswerProver:
    """One for a process."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def open(
        self, evidence: TurnEvidence, agent: AgentName, *, style: CitationFormat, read_own: ReadOwn = no_own_files
    ) -> TurnProofs:
        """For a turn of the agent."""
        return _Proofs(evidence, style, partial(CitationProver, self._library, agent, read_own))


class _UnprovedText:
    def __init__(self) -> None:
        self._unmarked = UnmarkedText()

    async def feed(self, text: str) -> str:
        return self._unmarked.feed(text)

    async def finish(self) -> str:
        return self._unmarked.finish()


class _Proofs(TurnProofs):
    def __init__(
        self, evidence: TurnEvidence, style: CitationFormat, open_prover: Callable[[ReadPlaces], CitationProver]
    ) -> None:
        super().__init__(evidence)
        self._style = style
        self._open_prover = open_prover
        self._places: CitationProver | None = None
        self._read = 0

    def begin(self) -> _Proof:
        return _Proof(self, self._style)

    async def prove(self, text: str) -> ProvedAnswer:
        proof = self.begin()
        shown = await proof.feed(text) + await proof.finish()
        return ProvedAnswer(shown, tuple(proof.citations), proof.is_unknown)

    def places(self) -> CitationProver:
        """Looked up anew when a tool has run."""
        read = len(self.evidence.results)
        if self._places is None or self._read != read:
            self._places = self._open_prover(self.evidence.seen())
            self._read = read
        return self._places


class _Proof:
    """One text. The citations are in the order in which it names them, each once."""

    def __init__(self, proofs: _Proofs, style: CitationFormat) -> None:
        self._proofs = proofs
        self._unmarked, self._reader, self._writer = UnmarkedText(), CitationReader(), CitationWriter(style)
        self._cited = 0
        self.citations: dict[Citation, None] = {}

    @property
    def is_unknown(self) -> bool:
        return self._unmarked.has_found

    async def feed(self, text: str) -> str:
        return await self._write(self._reader.feed(self._unmarked.feed(text)))

    async def finish(self) -> str:
        last = self._reader.feed(self._unmarked.finish())
        return await self._write([*last, *self._reader.finish()]) + self._writer.finish()

    async def _write(self, pieces: list[str | CitationMark]) -> str:
        shown: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                shown.append(self._writer.text(piece))
            else:
                told: list[Citation] = []
                for ref in piece.refs:
                    self._cited += 1
                    if self._cited > MAX_CITED:
                        told.append(Citation(ref, doubt=CitationFault.TOO_MANY))
                    else:
                        told.append(await self._proofs.places().look_up(ref, piece.quoted))
                self.citations.update(dict.fromkeys(told))
                shown.append(self._writer.mark(told))
        return "".join(shown)
