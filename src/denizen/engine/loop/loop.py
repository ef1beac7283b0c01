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

from denizen.domain.errors import Unavailable
from denizen.domain.message import ImagePart, Role, TextPart, ToolCallPart, ToolResultPart, join_text, list_calls
from denizen.domain.prompt import PromptMessage, Stability
from denizen.domain.prompt_messages import note_data_uris
from denizen.engine.loop.output_form import demand_form, describe_form, fits, say_output
from denizen.engine.loop.steps import TurnSteps
from denizen.engine.prompt.caching import SHORT_S
from denizen.engine.prompt.context import TurnContext
from denizen.engine.prompt.notes import append_notes
from denizen.engine.prompt.system_prompt import tell_results, transient_note
from denizen.engine.tools.arguments import ArgumentsError, check_foreign_arguments
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
    limits, output, client = context.agent.limits, context.demands.output, context.demands.tools
    # As words: a model that thinks refuses calls of its own that it made without thinking.
    messages = [*history, *tell_results([PromptMessage(Role.TOOL, (result,)) for _, result in looked_up])]
    offered: frozenset[str] | None = None
    streak = 0
    nudges = worked = 0
    rounds: list[str] = []
    made: list[ToolCallPart] = []
    for number in range(1, limits.max_steps + 1):
        toolbox = await _find_tools(context, steps, made)
        names = frozenset(toolbox.tools) | client.names
        notes = [] if offered in (None, names) else [_TOOLS_CHANGED.format(tools=", ".join(toolbox.tools) or "none")]
        offered = names
        # Calls that are left to the client need no step after them.
        text_only = not names or (must_answer(number, limits.max_steps, streak) and not (client.specs and number == 1))
        if output is not None and text_only:
            break
        if text_only and names and number > 1:
            notes.append(_ANSWER_NOW)
        reply = await _ask_model(context, steps, messages, toolbox, text_only=text_only, notes=notes)
        calls = list_calls(reply.parts)
        if not text_only and (said := await _leave_calls(steps, reply, toolbox)) is not None:
            return said
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
            if output is not None and fits(output, text):
                return _keep_answer(steps, reply, say_output(steps, output, reply, text))
            if output is None and (text or any(isinstance(part, ImagePart) for part in reply.parts)):
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
    can, session, client = context.model.capabilities, context.turn.session_id, context.demands.tools
    if not can.takes_tools or client.is_required:
        return Toolbox({})
    wish = ToolRequest(context.question, steps.selections.of(session), made, SMALL_MODEL_TOOLS if can.small else 0)
    toolbox = await resolve_tools(context.agent, context.generation.toolsets, wish)
    if toolbox.chosen:
        steps.selections.keep(session, toolbox.chosen)
    return toolbox.without(client.names)


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
    *,
    text_only: bool,
    notes: Sequence[str],
) -> ModelReply:
    """The tools stay in the request even when none may be called: they are part of the cached prefix."""
    output, client = context.demands.output, context.demands.tools
    specs = (*toolbox.specs, *client.specs)
    choice: ToolChoice = "none" if text_only else "required" if client.is_required else "auto"
    notes = notes if output is None else [*notes, describe_form(output)]
    # No later prompt shows the calls of a participant, so its messages keep their bytes for this turn only.
    promise = Stability.SESSION if context.speakers is None else Stability.TURN
    told = append_notes(messages, [*context.prompt.notes, *map(transient_note, notes)], promise)
    if not specs:  # calls of before are refused where no tools are told
        told = tell_results(told)
    request = replace(
        context.request(told, native=bool(specs)), tools=specs, tool_choice=choice, parallel_calls=client.is_parallel
    )
    return await steps.ask(request, "answer" if choice == "none" else "act", show=output is None)


async def _leave_calls(steps: TurnSteps, reply: ModelReply, toolbox: Toolbox) -> str | None:
    """Ends the turn with calls of tools that the client runs, and returns the words beside them; None where there are
    none. Calls of the agent's own beside them are run. Raises Unavailable when there had to be one.
    """
    calls, client = list_calls(reply.parts), steps.context.demands.tools
    theirs = client.select_calls(calls)
    if not theirs:
        if client.is_required:
            raise unmet_choice(steps.context)
        return None
    own = [call for call in calls if toolbox.find(call.tool) is not None]
    kept = tuple(part for part in reply.parts if not isinstance(part, ToolCallPart) or part in (*own, *theirs))
    if own:
        await _run_calls(steps, replace(reply, parts=kept), own, toolbox)
    else:
        steps.keep(Role.ASSISTANT, kept)
    leave_calls(steps, theirs)
    return join_text(kept).strip()


def leave_calls(steps: TurnSteps, calls: Sequence[ToolCallPart]) -> None:
    """Raises Unavailable for arguments that do not fit, where the client is not to get such."""
    tools = steps.context.demands.tools
    for spec in tools.specs:
        for call in calls:
            if call.tool == spec.name and spec.name in tools.strict:
                try:
                    check_foreign_arguments(spec, call.args)
                except ArgumentsError as problem:
                    raise Unavailable(
                        "The model called a tool with arguments that do not fit it.",
                        code="arguments_invalid",
                        why=str(problem),
                        fix="Try again, or leave `strict` out.",
                    ) from problem
    steps.leave_calls(calls)


def unmet_choice(context: TurnContext) -> Unavailable:
    """Returns the error for a model that answered although it had to call a tool."""
    return Unavailable(
        f"The model of {context.agent.name} did not call the tool that it had to call.",
        code="tool_choice_unmet",
        why="not every model can be made to",
        fix="Try again, or let `tool_choice` be auto.",
    )


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
    output, told = context.demands.output, tell_results(messages)
    now = [transient_note(_ANSWER_NOW)] if steps.number else []  # else there never were tools
    request = context.request([*told, *context.prompt.notes, *now])
    # Without tools the prompt is like no other of the conversation, so it is not worth keeping in a cache for long.
    request = replace(request, tool_choice="none", keep_s=SHORT_S)
    if output is not None:
        reply = await steps.ask(demand_form(request, output), "final", show=False)
        return _keep_answer(steps, reply, say_output(steps, output, reply, join_text(reply.parts)))
    reply = await steps.ask(request, "final")
    text = join_text(reply.parts).strip()
    if text:
        return _keep_answer(steps, reply, text)
    steps.keep(Role.ASSISTANT, (TextPart(APOLOGY),))
    return APOLOGY


def _keep_answer(steps: TurnSteps, reply: ModelReply, text: str) -> str:
    kept = tuple(part for part in reply.parts if not isinstance(part, ToolCallPart))
    steps.keep(Role.ASSISTANT, kept)
    return text
