"""Configured commands: a program through the gate, a prompt, or a prompt about the output of the program."""

from __future__ import annotations

import logging
from functools import partial

from denizen.domain.custom_command import CustomCommand, fill_prompt
from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.ids import CallId, TurnId, derive
from denizen.domain.json import JsonObject
from denizen.domain.tool import Origin, ToolCall
from denizen.domain.verdict import Decision
from denizen.domain.words import truncate
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import code_block
from denizen.engine.gate.executor import BoundTool, CallOutcome
from denizen.engine.tools.arguments import ArgumentsError, check_arguments
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec, ProgramOutput
from denizen.ports.toolset import AskedText, CallOptions, CallScope
from denizen.skill.context import quote_untrusted

MAX_PROMPT_OUTPUT_CHARS = 8000
"""How much of a program's output goes into a prompt: a small model must be able to read it."""

EXIT_CODE = "exit_code"
"""The key in a result's data of a program that ended by itself. Without it, it was denied, stopped, or never began."""

_INPUT = "input"

_log = logging.getLogger("denizen.command")


def build_custom(custom: CustomCommand) -> CommandDefinition:
    """Builds the definition of a configured command. It has an input only when a template uses it."""
    options = (CommandOption(_INPUT, "What to give to it.", required=True),) if custom.takes_input else ()
    spec = CommandSpec(
        custom.name, custom.description, options, admin_only=custom.admin_only, public=bool(custom.prompt)
    )
    return CommandDefinition(spec, partial(_run, custom))


async def _run(custom: CustomCommand, context: CommandContext) -> CommandReply:
    output, printed = "", None
    if custom.shell:
        outcome = await _run_program(custom, context)
        result = outcome.result
        if outcome.verdict.decision is not Decision.APPROVE:
            return CommandReply(_denied(custom, result.text), is_failure=True)
        printed = ProgramOutput(result.text, is_error=result.is_error)
        # Without an exit code the program did not end by itself: there is no output to ask the agent about.
        if not custom.prompt or EXIT_CODE not in result.data:
            block = code_block(result.text or "(no output)", limit=context.message_limit)
            return CommandReply(block, is_failure=result.is_error, output=printed)
        # A program may print words of strangers. Quoted, the model does not take them for instructions.
        output = quote_untrusted(truncate(result.text, MAX_PROMPT_OUTPUT_CHARS), source=f"the command /{custom.name}")
    prompt = fill_prompt(custom.prompt, text=context.option(_INPUT), output=output)
    await context.deps.open_turn(context.command, prompt, agent=custom.agent, new_session=custom.new_session)
    return CommandReply(private=False, is_pending=True, output=printed)


async def _run_program(custom: CustomCommand, context: CommandContext) -> CallOutcome:
    """Runs the program through the gate, on behalf of the caller."""
    command, services = context.command, context.services
    bound = await _bind(custom, context)
    args: JsonObject = {_INPUT: context.option(_INPUT)} if custom.shell_takes_input else {}
    try:
        checked = check_arguments(bound.spec, args)
    except ArgumentsError as problem:
        raise InvalidInput(str(problem), code="command_input") from problem
    # The same command gives the same key, so a command that is delivered twice runs its program once.
    key = derive("call", "command", command.room.platform, command.id)
    scope = await _scope(context, key)
    call = ToolCall(CallId(key), custom.tool, checked, Origin.COMMAND)
    async with context.deps.runtime.lease() as generation:
        outcome = await services.gate.run(bound, call, scope, generation.policy)
    verdict = outcome.verdict
    _log.info(
        "command",
        extra={
            "command": custom.name,
            "tool": custom.tool,
            "agent": scope.agent,
            "principal": scope.principal.key,
            "conversation": scope.conversation_id,
            "call": key,
            "decision": str(verdict.decision),
            "tier": int(verdict.tier),
            "decided_by": verdict.decided_by,
            "is_error": outcome.result.is_error,
            "duration_ms": outcome.duration_ms,
        },
    )
    return outcome


async def _bind(custom: CustomCommand, context: CommandContext) -> BoundTool:
    toolset = context.generation.commands.toolset
    specs = await toolset.list_tools() if toolset else ()
    spec = next((spec for spec in specs if spec.name == custom.tool), None)
    if toolset is None or spec is None:
        raise NeedsAttention(f"The program of /{custom.name} cannot be run here.", code="command_no_program")
    return BoundTool(spec, toolset)


async def _scope(context: CommandContext, key: str) -> CallScope:
    now = context.now()
    async with context.store.work() as work:
        home = await work.conversations.put(context.session_place, now=now)
        session = await work.sessions.current(home.id, context.agent.name, now=now)
    return CallScope(
        agent=context.agent.name,
        principal=context.caller.principal,
        place=context.command.room.place,
        session_id=session.id,
        # No turn runs: the id stands for the command.
        turn_id=TurnId(derive("turn", "command", context.command.room.platform, context.command.id)),
        guild=context.command.room.guild,
        question=AskedText(f"/{context.command.name} {context.option(_INPUT)}".strip()),
        options=CallOptions(idempotency_key=key),
    )


def _denied(custom: CustomCommand, why: str) -> str:
    return (
        f"/{custom.name} was not run.\nwhy: {why}\n"
        f"fix: The operator can approve it by a rule: under gate.rules, tool: {custom.tool}, action: approve."
    )
