"""Configured commands: a program through the gate, a prompt, or a prompt about what the program printed (T35, T37)."""

from __future__ import annotations

import logging

from denizen.domain.custom_command import CustomCommand, fill_prompt
from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.domain.ids import CallId, TurnId, derive
from denizen.domain.json import JsonObject
from denizen.domain.tool import Origin, ToolCall
from denizen.domain.verdict import Decision
from denizen.engine.arguments import ArgumentsError, check_arguments
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import code_block, truncate
from denizen.engine.gate.door import BoundTool, Outcome
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.toolset import CallScope
from denizen.skill.untrusted import quote_untrusted

MAX_PROMPT_OUTPUT_CHARS = 8000
"""Of what the program printed, in a prompt: a small model must be able to read it."""

EXIT_CODE = "exit_code"
"""In the data of a result: the program ended by itself. Without it, it was denied, stopped, or never began."""

_INPUT = "input"

_log = logging.getLogger("denizen.command")


def build_custom(custom: CustomCommand) -> CommandDefinition:
    """The configured command as one of the others. It has an input only when a template uses it."""
    options = (CommandOption(_INPUT, "What to give to it.", required=True),) if custom.takes_input else ()

    async def run(given: CommandContext) -> CommandReply:
        return await _run(custom, given)

    spec = CommandSpec(
        custom.name, custom.description, options, admin_only=custom.admin_only, public=bool(custom.prompt)
    )
    return CommandDefinition(spec, run)


async def _run(custom: CustomCommand, given: CommandContext) -> CommandReply:
    output = ""
    if custom.shell:
        outcome = await _run_program(custom, given)
        result = outcome.result
        if outcome.verdict.decision is not Decision.APPROVE:
            return CommandReply(_denied(custom, result.text), is_failure=True)
        if not custom.prompt or EXIT_CODE not in result.data:
            block = code_block(result.text or "(no output)", limit=given.at.account_policy.message_limit)
            return CommandReply(block, is_failure=result.is_error)
        output = quote_untrusted(truncate(result.text, MAX_PROMPT_OUTPUT_CHARS), source=f"the command /{custom.name}")
    prompt = fill_prompt(custom.prompt, text=given.option(_INPUT), output=output)
    await given.on.open_turn(given.command, prompt, agent=custom.agent, new_session=custom.new_session)
    return CommandReply(private=False, is_pending=True)


async def _run_program(custom: CustomCommand, given: CommandContext) -> Outcome:
    """Through the gate, on behalf of who gave the command."""
    command, services = given.command, given.on.services
    bound = await _bind(custom, given)
    args: JsonObject = {_INPUT: given.option(_INPUT)} if custom.shell_takes_input else {}
    try:
        checked = check_arguments(bound.spec, args)
    except ArgumentsError as problem:
        raise InvalidInput(str(problem), code="command_input") from problem
    key = derive("call", "command", command.room.platform, command.id)
    scope = await _scope(given, key)
    call = ToolCall(CallId(key), custom.tool, checked, Origin.COMMAND)
    async with given.on.runtime.lease() as generation:
        outcome = await services.gate.run(bound, call, scope, generation.policy)
    verdict = outcome.verdict
    _log.info(
        "command",
        extra={
            "command": custom.name, "tool": custom.tool, "agent": scope.agent, "principal": scope.principal.key,
            "conversation": scope.conversation_id, "call": key, "decision": str(verdict.decision),
            "tier": int(verdict.tier), "decided_by": verdict.decided_by, "is_error": outcome.result.is_error,
            "duration_ms": outcome.duration_ms,
        },
    )  # fmt: skip
    return outcome


async def _bind(custom: CustomCommand, given: CommandContext) -> BoundTool:
    toolset = given.on.customs().toolset
    specs = await toolset.list_tools() if toolset else ()
    spec = next((spec for spec in specs if spec.name == custom.tool), None)
    if toolset is None or spec is None:
        raise NeedsAttention(f"The program of /{custom.name} cannot be run here.", code="command_no_program")
    return BoundTool(spec, toolset)


async def _scope(given: CommandContext, key: str) -> CallScope:
    now = given.on.services.clock.now()
    async with given.on.services.store.work() as work:
        home = await work.conversations.put(given.session_place, now=now)
        session = await work.sessions.current(home.id, given.agent.name, now=now)
    return CallScope(
        given.agent.name,
        given.at.principal,
        given.command.room.place,
        given.here,
        session.id,
        TurnId(derive("turn", "command", given.command.room.platform, given.command.id)),
        idempotency_key=key,
        guild=given.command.room.guild,
        question=f"/{given.command.name} {given.option(_INPUT)}".strip(),
    )


def _denied(custom: CustomCommand, why: str) -> str:
    return (
        f"/{custom.name} was not run.\nwhy: {why}\n"
        f"fix: The operator can approve it by a rule: under gate.rules, tool: {custom.tool}, action: approve."
    )
