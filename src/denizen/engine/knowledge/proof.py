"""The texts of a turn with what they cite proved, as they are streamed and as they stand in the end.

What is not proved is taken out and marked (`domain/cited_text`), and a text that names no place gets those that it was
plainly taken from (`domain/attribution`); nothing that goes wrong here keeps an answer back. A
stream and the text at its end are written in the same way, so people keep what they have seen. `steps` streams, `turn`
has the answer proved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from anyio import to_thread

from denizen.domain.agent import CitationFormat
from denizen.domain.citation import Citation, CitationFault
from denizen.domain.cited_text import CitationMark, CitationReader, CitationWriter, Piece, UnmarkedText
from denizen.domain.ids import AgentName
from denizen.domain.record import record
from denizen.engine.configuration.generation import ReadOwn, no_own_files
from denizen.engine.knowledge.citations import CitationProver, ReadPlaces, TurnEvidence, find_document
from denizen.ports.source import DocumentText, Library

if TYPE_CHECKING:
    from denizen.domain.attribution import Attribution

MAX_CITED = 50
"""The limit of one answer; further citations are not looked up, and so not proved."""
MAX_MENTIONED = 500
"""The same for what may be no citation."""


@record
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
        self,
        evidence: TurnEvidence,
        agent: AgentName,
        *,
        style: CitationFormat,
        read_own: ReadOwn = no_own_files,
        guild: str = "",
    ) -> TurnProofs:
        """For a turn of the agent in the community `guild`, or outside of any."""
        return _Proofs(evidence, style, partial(CitationProver, self._library, agent, read_own, guild=guild))

    async def find_document(
        self, path: str, agent: AgentName, read_own: ReadOwn, *, guild: str = ""
    ) -> DocumentText | None:
        """Returns a document that the agent may cite there, as it is now."""
        return await find_document(self._library, agent, read_own, path, guild=guild)


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

    async def find_attributions(self, text: str) -> list[Attribution]:
        """Returns where a text was taken from that was read in this turn."""
        if not any(each.places for each in self.evidence.results):
            return []
        from denizen.domain.attribution import find_attributions

        read = await self.places().list_read(self.evidence.results)
        return await to_thread.run_sync(find_attributions, text, read, self.evidence.question)

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
        self._proofs, self._style = proofs, style
        self._said: list[str] = []
        self._unmarked, self._reader, self._writer = UnmarkedText(), CitationReader(), CitationWriter(style)
        self._cited = self._mentioned = 0
        self.citations: dict[Citation, None] = {}

    @property
    def is_unknown(self) -> bool:
        return self._unmarked.has_found

    async def feed(self, text: str) -> str:
        return await self._write(self._reader.feed(self._unmarked.feed(text)))

    async def finish(self) -> str:
        last = self._reader.feed(self._unmarked.finish())
        shown = await self._write([*last, *self._reader.finish()])
        return shown + await self._name_sources() + self._writer.finish()

    async def _name_sources(self) -> str:
        """The places that the text was taken from, where it names none itself."""
        if self.citations or self.is_unknown or self._style is CitationFormat.NONE:
            return ""
        found = await self._proofs.find_attributions("".join(self._said))
        told: list[Citation] = []
        for each in found:
            told += await self._proofs.places().prove(CitationMark((each.ref,), each.sentence))
        proved = [each for each in told if each.doubt is None]
        self.citations.update(dict.fromkeys(proved))
        return self._writer.text(" ") + self._writer.mark(proved) if proved else ""

    async def _write(self, pieces: list[Piece]) -> str:
        return "".join([await self._show(piece) for piece in pieces])

    async def _show(self, piece: Piece) -> str:
        if isinstance(piece, str):
            self._said.append(piece)
            return self._writer.text(piece)
        counted, limit = (self._mentioned, MAX_MENTIONED) if piece.is_mention else (self._cited, MAX_CITED)
        if counted >= limit:
            told: Sequence[Citation] = [Citation(ref, doubt=CitationFault.TOO_MANY) for ref in piece.refs]
        else:
            told = await self._proofs.places().prove(piece)
            self._cited += 0 if piece.is_mention else len(piece.refs)
            self._mentioned += len(piece.refs) if piece.is_mention else 0
        self.citations.update(dict.fromkeys(told))
        is_proved = all(each.doubt is None for each in told)
        if not told or (piece.is_bare and is_proved):
            self._said.append(piece.written)
            return self._writer.text(piece.written)
        label = self._writer.text(f"{piece.label} ") if piece.label else ""
        return label + self._writer.mark([] if piece.is_bare else told)
