"""Model and tools in turns until there is an answer or a limit (native tool calls).

Rules: tools are resolved anew each step, with a passing note when they changed; the last two steps are
without tools; four tool-only steps in a row from 60 % of the steps on force one without; the third
identical round ends the calls; a run without an answer gets one more request without tools. An answer that came
because the steps were used up says so. One reply cannot start any number of calls: those beyond a bound come back
unrun.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from denizen.domain.message import ImagePart, Role, TextPart, ToolCallPart, ToolResultPart, join_text, list_calls
from denizen.domain.prompt import PromptMessage, Stability
from denizen.domain.prompt_messages import note_data_uris
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.caching import SHORT_S
from denizen.engine.prompt.context import TurnContext
from denizen.engine.prompt.notes import append_notes
from denizen.engine.prompt.system_prompt import tell_results, transient_note
from denizen.engine.tools.toolbox import FIND_TOOLS, SMALL_MODEL_TOOLS, Toolbox, ToolRequest, resolve_tools
from denizen.ports.model import ModelReply, ToolChoice

IDENTICAL_ROUNDS = 3
TOOL_ONLY_STREAK = 4
MAX_CALLS_PER_STEP = 32
APOLOGY = "I could not find an answer to that. Please try asking in another way."

_ANSWER_NOW = "Answer now, in plain text, with what you have. No more tools."
_TOOLS_CHANGED = "Your tools have changed. Available now: {tools}."
_NUDGE = "Use one of your tools to do this instead of describing it."


async def run_loop(
    context: TurnContext,
    steps: TurnSteps,
    history: Sequence[PromptMessage],
    looked_up: Sequence[tuple[ToolCallPart, ToolResultPart]] = (),
) -> str:
    """Returns the text of the answer. `history` ends with the message to answer, `looked_up` is known already. Raises
    what the model raises.
    """
    limits = context.agent.limits
    # As words: a model that thinks refuses calls of its own that it made without thinking.
    messages = [*history, *tell_results([PromptMessage(Role.TOOL, (result,)) for _, result in looked_up])]
    offered: frozenset[str] | None = None
    streak = 0
    nudges = worked = 0
    rounds: list[str] = []
    made: list[ToolCallPart] = []
    for number in range(1, limits.max_steps + 1):
        toolbox = await _find_tools(context, steps, made)
        names = frozenset(toolbox.tools)
        notes = [] if offered in (None, names) else [_TOOLS_CHANGED.format(tools=", ".join(toolbox.tools) or "none")]
        offered = names
        text_only = not names or must_answer(number, limits.max_steps, streak)
        if text_only and names and number > 1:
            notes.append(_ANSWER_NOW)
        reply = await _ask_model(context, steps, messages, toolbox, "none" if text_only else "auto", notes)
        calls = list_calls(reply.parts)
        if is_reserved(number, limits.max_steps):
            # Looking for a tool is no work, so an answer after that alone has lost nothing.
            is_used_up = worked >= count_tool_steps(limits.max_steps)
            steps.is_at_limit = bool(steps.call_count) and (is_used_up or bool(calls))
        calls = () if text_only else calls
        if not calls:
            text = join_text(reply.parts).strip()
            if text and names and not text_only and not steps.call_count and nudges < limits.nudges:
                nudges += 1
                # The configured text is used on the last nudge only.
                nudge = limits.nudge_text if limits.nudge_text and nudges == limits.nudges else _NUDGE
                messages += [PromptMessage(Role.ASSISTANT, note_data_uris(reply.parts)), transient_note(nudge)]
                steps.retract()
                continue
            if text or any(isinstance(part, ImagePart) for part in reply.parts):
                return _keep_answer(steps, reply, text)
            break
        made += calls
        worked += any(call.tool != FIND_TOOLS for call in calls)
        rounds.append(json.dumps([[call.tool, call.args] for call in calls], sort_keys=True))
        steps.retract()
        if rounds[-IDENTICAL_ROUNDS:] == [rounds[-1]] * IDENTICAL_ROUNDS:
            break
        streak = 0 if join_text(reply.parts).strip() else streak + 1
        messages += await _run_calls(steps, reply, calls, toolbox)
    return await _answer_without_tools(context, steps, messages)


async def _find_tools(context: TurnContext, steps: TurnSteps, made: Sequence[ToolCallPart]) -> Toolbox:
    """Those of the session, and what the calls of this turn have found."""
    can, session = context.model.capabilities, context.turn.session_id
    if not can.takes_tools:
        return Toolbox({})
    wish = ToolRequest(context.question, steps.selections.of(session), made, SMALL_MODEL_TOOLS if can.small else 0)
    toolbox = await resolve_tools(context.agent, context.generation.toolsets, wish)
    if toolbox.chosen:
        steps.selections.keep(session, toolbox.chosen)
    return toolbox


def must_answer(number: int, max_steps: int, tool_only_streak: int) -> bool:
    """Whether this step must do without tools. Steps count from 1."""
    if is_reserved(number, max_steps):
        return True
    return number >= 0.6 * max_steps and tool_only_streak >= TOOL_ONLY_STREAK


def is_reserved(number: int, max_steps: int) -> bool:
    """Whether this is one of the last steps, which are kept for the answer."""
    return number > count_tool_steps(max_steps)


def count_tool_steps(max_steps: int) -> int:
    """Returns how many steps may call tools: two are kept for the answer, or one where there are no more than two."""
    return max_steps - (2 if max_steps > 2 else 1)


async def _ask_model(
    context: TurnContext,
    steps: TurnSteps,
    messages: Sequence[PromptMessage],
    toolbox: Toolbox,
    choice: ToolChoice,
    notes: Sequence[str],
) -> ModelReply:
    """The tools stay in the request even when none may be called: they are part of the cached prefix."""
    # No later prompt shows the calls of a participant, so its messages keep their bytes for this turn only.
    promise = Stability.SESSION if context.speakers is None else Stability.TURN
    told = append_notes(messages, [*context.prompt.notes, *map(transient_note, notes)], promise)
    request = replace(context.request(told, native=True), tools=toolbox.specs, tool_choice=choice)
    return await steps.ask(request, "answer" if choice == "none" else "act")


async def _run_calls(
    steps: TurnSteps, reply: ModelReply, calls: Sequence[ToolCallPart], toolbox: Toolbox
) -> list[PromptMessage]:
    results = (*await steps.call(calls[:MAX_CALLS_PER_STEP], toolbox), *map(_leave_unrun, calls[MAX_CALLS_PER_STEP:]))
    steps.keep(Role.ASSISTANT, reply.parts)
    steps.keep(Role.TOOL, results)
    await steps.save()
    return [PromptMessage(Role.ASSISTANT, note_data_uris(reply.parts)), PromptMessage(Role.TOOL, results)]


def _leave_unrun(call: ToolCallPart) -> ToolResultPart:
    text = f"Not run: only {MAX_CALLS_PER_STEP} calls are run at a time. Ask for the others when these are read."
    return ToolResultPart(call.id, call.tool, text, is_error=True)


async def _answer_without_tools(context: TurnContext, steps: TurnSteps, messages: Sequence[PromptMessage]) -> str:
    """One more request, in which tools do not exist: some servers let a model call them although it was told not to."""
    request = context.request([*tell_results(messages), *context.prompt.notes, transient_note(_ANSWER_NOW)])
    # Without tools the prompt is like no other of the conversation, so it is not worth keeping in a cache for long.
    reply = await steps.ask(replace(request, tool_choice="none", keep_s=SHORT_S), "final")
    text = join_text(reply.parts).strip()
    if text:
        return _keep_answer(steps, reply, text)
    steps.keep(Role.ASSISTANT, (TextPart(APOLOGY),))
    return APOLOGY


def _keep_answer(steps: TurnSteps, reply: ModelReply, text: str) -> str:
    kept = tuple(part for part in reply.parts if not isinstance(part, ToolCallPart))
    steps.keep(Role.ASSISTANT, kept)
    return text
