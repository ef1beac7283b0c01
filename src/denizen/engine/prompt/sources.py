"""What an agent is told that answers from its sources only (S-prompt-chat, S-prompt-bot): in full, and in a shorter
form where others read along or tools are planned. Called by `gather`.
"""

from __future__ import annotations

from collections.abc import Collection

from denizen.domain.agent import Agent, AnswersFrom, CitationFormat
from denizen.domain.cited_text import UNKNOWN

TOOLS = frozenset({"bash", "bash_batch", "list_knowledge", "read_knowledge", "search_docs"})
"""Those that read sources. They are there only where there is something to read, or an agent names them."""

_FULL = """\
Answer only from your sources: what your tools find in your knowledge files. Where these say nothing, say so and write \
{unknown}; do not fill in from memory. Greetings and thanks need no search.
Search, then read what you found, each in one batch: ask for everything at once.{cite}
Never repeat a command that failed: change it. Never end on a tool call or with a placeholder such as "let me check": \
end with the answer."""
_CITE = "\nCite path and lines behind each statement, as in [docs/guide.md:12-18]."

_SHORT = """\
Answer only from your sources, your knowledge files: read them, do not only list them{cite}. Where they say nothing, \
say so and write {unknown}. Never repeat a failing command, and never end on a tool call or a placeholder."""
_CITE_SHORT = ", and cite path and lines, as in [docs/guide.md:12-18]"


def source_rules(agent: Agent, tools: Collection[str], *, is_short: bool) -> str:
    """`tools` are the names of those that the agent may use; empty for one that may answer from anything."""
    if agent.answers_from is not AnswersFrom.SOURCES or not TOOLS.intersection(tools):
        return ""
    text, cite = (_SHORT, _CITE_SHORT) if is_short else (_FULL, _CITE)
    return text.format(cite="" if agent.style.citations is CitationFormat.NONE else cite, unknown=UNKNOWN)
