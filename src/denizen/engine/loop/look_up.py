"""The search of an agent's documents before its model is asked.

A small model seldom thinks of looking, and one that plans decides before it has read anything. So the best passages for
the question are there from the start. It is a call of `search_docs` like any other, but for who asked for it: it passes
the gate, stands in the trace, and what it found counts as read. Called by `turn`, between prompt and loop.
"""

from __future__ import annotations

from denizen.domain.agent import LookUp
from denizen.domain.ids import CallId, derive
from denizen.domain.json import Json
from denizen.domain.message import Role, ToolCallPart, ToolResultPart
from denizen.domain.ranking import telling_words
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.context import TurnContext
from denizen.engine.tools.toolbox import Toolbox, list_allowed

SEARCH, SKILL = "search_docs", "knowledge"
"""The tool, and the skill that it is of."""
PASSAGES = 3
"""How many are looked up. A passage has 1,200 characters at most, so they fit what a plan shows of a result."""
MAX_QUERY_CHARS = 500


async def look_up(context: TurnContext, steps: TurnSteps) -> list[tuple[ToolCallPart, ToolResultPart]]:
    """Returns the call and what it found; nothing where nothing fits the question, or the agent does not look up."""
    wish = context.agent.tool_access.look_up
    needs_it = context.plans or context.model.capabilities.small
    if wish is LookUp.NEVER or (wish is LookUp.AUTO and not needs_it) or not telling_words(context.question):
        return []
    toolbox = Toolbox(await list_allowed(context.agent, context.generation.toolsets))
    bound = toolbox.find(SEARCH)
    if bound is None or bound.spec.source != SKILL:  # no server outside gets each question because of a name
        return []
    args: dict[str, Json] = {"query": context.question[:MAX_QUERY_CHARS], "limit": PASSAGES, "strict": True}
    call = ToolCallPart(CallId(derive("call", context.turn.id, "look up")), SEARCH, args)
    [result] = await steps.call([call], toolbox, is_asked=False)
    if result.is_error or not steps.evidence.found:
        return []
    steps.keep(Role.ASSISTANT, [call])
    steps.keep(Role.TOOL, [result])
    await steps.save()
    return [(call, result)]
