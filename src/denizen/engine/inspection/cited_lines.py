"""The lines that an answer cites, with those around them, for whoever reads the answer."""

from __future__ import annotations

from collections.abc import Sequence

from denizen.domain.citation import Citation
from denizen.domain.errors import NotFound
from denizen.domain.record import record
from denizen.domain.turn import Turn
from denizen.engine.configuration.generation import Runtime
from denizen.engine.intake.opening import find_reply_target
from denizen.engine.loop.services import EngineServices

LINES_AROUND = 6
MAX_LINES = 400


@record(kw_only=True)
class CitedExcerpt:
    """Lines of a document from `first_shown` on, and the citation that they belong to. `is_newer` tells that the
    document may have changed since it was cited.
    """

    citation: Citation
    first_shown: int
    lines: Sequence[str]
    is_newer: bool = False


async def read_cited_lines(runtime: Runtime, services: EngineServices, turn: Turn, place: str) -> CitedExcerpt:
    """Returns the lines that a turn cites as `path:first-last`, as they are now.

    Raises NotFound when the turn has no such citation, and when the document is gone.
    """
    async with services.store.work(write=False) as work:
        known = await work.citations.list_for(turn.id)
    citation = next((each for each in known if each.doubt is None and str(each.ref).endswith(place)), None)
    if citation is None:
        raise NotFound(
            f"This answer does not cite {place[:200]}.",
            code="citation_not_found",
            why="the agent read no such lines before it answered",
            fix="Look under Why? at what it read.",
        )
    found = None
    if services.prover is not None:
        owed, read_own = find_reply_target(turn), runtime.current.knowledge.read_own
        found = await services.prover.find_document(
            citation.ref.path, turn.agent, read_own, guild=owed.guild if owed else ""
        )
    if found is None:
        raise NotFound(
            f"{citation.ref.path} is not among the documents any more.",
            code="document_gone",
            fix=f"See {citation.link}." if citation.link else "It was removed from its source, or renamed there.",
        )
    lines = found.text.split("\n")
    first, last = citation.ref.first_line or 1, citation.ref.last_line or len(lines)
    begin = max(first - LINES_AROUND, 1)
    shown = lines[begin - 1 : min(last + LINES_AROUND, begin + MAX_LINES)]
    is_newer = found.part is not None and found.part.revision != citation.revision
    return CitedExcerpt(citation=citation, first_shown=begin, lines=shown, is_newer=is_newer)
