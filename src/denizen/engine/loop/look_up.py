"""The search of an agent's documents, and of what people said, before its model is asked.

A small model seldom thinks of looking, and one that plans decides before it has read anything. So the best passages for
the question are there from the start, and on a platform, where the question is about what was said, the talk that
answers it. What somebody wants remembered in so many words is kept at once, too, which such a model gets wrong. They
are calls of `search_docs`, `search_archive` and `remember` like any other, but for who asked for them: they pass the
gate, stand in the trace, and what they found counts as read. Called by `turn`, between prompt and loop.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from denizen.domain.agent import AnswersFrom, LookUp
from denizen.domain.ids import CallId, derive
from denizen.domain.json import Json
from denizen.domain.message import Role, ToolCallPart, ToolResultPart, join_text
from denizen.domain.prompt import PromptMessage
from denizen.domain.prompt_messages import count_tokens
from denizen.domain.ranking import topic_words
from denizen.domain.taint import QUOTED
from denizen.domain.talk_question import asks_about_talk
from denizen.engine.intake.opening import find_reply_target
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.context import TurnContext
from denizen.engine.tools.toolbox import Toolbox, list_allowed

SEARCH, SEARCH_TALK, REMEMBER = "search_docs", "search_archive", "remember"
SKILLS = {SEARCH: "knowledge", SEARCH_TALK: "archive", REMEMBER: "memory"}
"""The skills that the tools are of."""
PASSAGES = 3
"""How many are looked up. A passage has 1,200 characters at most, so they fit what a plan shows of a result."""
MAX_TOKENS = 2000
"""The limit for passages and talk together. Passages come first; talk that does not fit beside them is left out."""
MAX_QUERY_CHARS = 500
FEW_WORDS = 2
_REFERS_BACK = re.compile(
    r"(?i)^(?:and|what about|how about|und|was ist mit|et)\b"
    r"|\b(?:it|its|they|them|their|he|she|him|his|her|er|ihn|ihm|ihr|dafür|davon|damit)\b"
)
"""Words of a question that only the one before it explains. Where it tells little else, both are looked up together."""
_KEEP = re.compile(
    r"(?is)\W*(?:(?:please|bitte)\W+)?"
    r"(?:remember(?: this| the following)?(?: about me)?(?: that\b| ?:)|merke? dir(?:,? dass\b| ?:))"
    r"\s*(?P<fact>(?!.*\b(?:and|und) (?:tell|say|write|show|give|answer|sag)\b)[^\s?][^?!;:\n]{2,300})[!]?\s*"
)
"""A message that is only the wish to remember what it says."""
_MARKS = re.compile(r"\A(?:\[[^\n]*\]\n)+")
"""The lines with date and time that stand in front of what was said."""


async def look_up(context: TurnContext, steps: TurnSteps) -> list[tuple[ToolCallPart, ToolResultPart]] | None:
    """Returns the calls and what they found, documents first; an empty list where nothing fits, None where the agent
    does not look up.
    """
    wish = context.agent.tool_access.look_up
    needs_it = context.plans or context.model.capabilities.small
    if not needs_it and wish is not LookUp.ALWAYS:
        return None
    is_short = len(context.question) <= MAX_QUERY_CHARS
    to_keep = _KEEP.fullmatch(context.question) if needs_it and is_short else None
    planned = [_keep(context, to_keep["fact"])] if to_keep else []
    toolbox = Toolbox(await list_allowed(context.agent, context.generation.toolsets))
    calls = [call for call in planned if _is_ours(toolbox, call.tool)]
    if not calls and wish is not LookUp.NEVER and topic_words(context.question):
        calls = [call for call in _plan_calls(context, steps.evidence.history) if _is_ours(toolbox, call.tool)]
    if not calls:
        return None
    results = await steps.call(calls, toolbox, is_asked=False)
    found: list[tuple[ToolCallPart, ToolResultPart]] = []
    left = MAX_TOKENS
    for call, result in zip(calls, results, strict=True):
        has_found = steps.evidence.found if call.tool == SEARCH else QUOTED in result.text
        left -= count_tokens(PromptMessage(Role.TOOL, (result,))) if has_found else 0
        if call.tool == REMEMBER or (has_found and not result.is_error and (left >= 0 or not found)):
            found.append((call, result))
    if found:
        steps.keep(Role.ASSISTANT, [call for call, _ in found])
        steps.keep(Role.TOOL, [result for _, result in found])
        await steps.save()
    return found


def _keep(context: TurnContext, fact: str) -> ToolCallPart:
    return ToolCallPart(CallId(derive("call", context.turn.id, "keep")), REMEMBER, {"text": fact.strip()})


def _plan_calls(context: TurnContext, history: Sequence[PromptMessage]) -> list[ToolCallPart]:
    asked = context.question[:MAX_QUERY_CHARS]
    before = [_MARKS.sub("", join_text(message.parts)) for message in history[:-1] if message.role is Role.USER]
    refers_back = _REFERS_BACK.search(asked) and len(topic_words(asked)) <= FEW_WORDS
    whole = f"{before[-1]} {asked}"[-MAX_QUERY_CHARS:] if before and refers_back else asked
    args: dict[str, Json] = {"query": whole, "limit": PASSAGES, "strict": True}
    calls = [ToolCallPart(CallId(derive("call", context.turn.id, "look up")), SEARCH, args)]
    is_on_platform = find_reply_target(context.turn) is not None
    may_quote_people = context.agent.instructions.answers_from is not AnswersFrom.SOURCES
    if is_on_platform and may_quote_people and asks_about_talk(asked):
        args = {"words": asked, "strict": True}
        calls.append(ToolCallPart(CallId(derive("call", context.turn.id, "look up talk")), SEARCH_TALK, args))
    return calls


def _is_ours(toolbox: Toolbox, tool: str) -> bool:
    """Whether the tool is there, and of our skill: no server outside gets each question because of a name."""
    bound = toolbox.find(tool)
    return bound is not None and bound.spec.source == SKILLS[tool]
