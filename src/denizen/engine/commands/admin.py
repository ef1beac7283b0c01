"""The commands of admins and owners: `/allow` and `/observer`.

`/allow` keeps the list of those who may talk to this account. Without a list, everybody may. `/observer` switches and
clears the model that looks at risky calls. While it is off, people are asked instead, so that no call runs unseen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from denizen.domain.errors import InvalidInput, NeedsAttention, NotFound
from denizen.engine.audit.audit_log import AuditLog
from denizen.engine.commands.command import CommandContext, CommandDefinition
from denizen.engine.commands.text import count_noun, join_names, private_reply, rank_suggestions
from denizen.engine.configuration.tool_policy import ObserverPolicy
from denizen.engine.gate.observer import Observer
from denizen.ports.channel import CommandOption, CommandReply, CommandSpec
from denizen.ports.inbox import AllowedKind
from denizen.ports.store import UnitOfWork

_ADD_OPTIONS = (CommandOption("user", "A user: @Name or an id."), CommandOption("role", "A role: @Name or an id."))
_REMOVE_OPTIONS = (
    CommandOption("user", "A user: @Name or an id.", suggests=True),
    CommandOption("role", "A role: @Name or an id.", suggests=True),
)


async def _allow(context: CommandContext) -> CommandReply:
    match context.command.group:
        case "add":
            return await _allow_add(context)
        case "remove":
            return await _allow_remove(context)
        case _:
            return await _allow_list(context)


async def _allow_add(context: CommandContext) -> CommandReply:
    kind, key, name = await _read_subject(context)
    caller, platform = context.caller, context.command.room.platform
    async with context.store.work() as work:
        # The first entry shuts everybody else out, which the admin should know.
        was_open = not await _has_list(work, context)
        await work.inbox.allow(caller.account, platform, kind, key, by=caller.principal.key, now=context.now())
    note = " The list was empty until now: others may not talk to me any more, admins aside." if was_open else ""
    return private_reply(f"The {kind} {name} may talk to me.{note}")


async def _allow_remove(context: CommandContext) -> CommandReply:
    kind, key, name = await _read_subject(context)
    caller, platform = context.caller, context.command.room.platform
    async with context.store.work() as work:
        if not await work.inbox.disallow(caller.account, platform, kind, key):
            raise _not_on_list(context, kind, key, name)
        is_open = not await _has_list(work, context)
    note = " The list is empty now, so everybody may talk to me." if is_open else ""
    return private_reply(f"The {kind} {name} is off the list.{note}")


def _not_on_list(context: CommandContext, kind: AllowedKind, key: str, name: str) -> NotFound:
    scope = context.caller.account_policy.scope
    if key in (scope.users if kind is AllowedKind.USER else scope.roles):
        return NotFound(
            f"The {kind} {name} is allowed by the configuration.",
            code="allow_configured",
            why="/allow changes its own list only.",
            fix="The operator takes it out of denizen.yaml.",
        )
    return NotFound(f"The {kind} {name} is not on the list.", code="allow_unknown", fix="See /allow list.")


async def _allow_list(context: CommandContext) -> CommandReply:
    scope = context.caller.account_policy.scope
    async with context.store.work(write=False) as work:
        users = await _load_allowed(work, context, AllowedKind.USER)
        roles = await _load_allowed(work, context, AllowedKind.ROLE)
        is_open = not await _has_list(work, context)
    if is_open:
        return private_reply("There is no list: everybody may talk to me here. /allow add starts one.")
    lines = [
        "These may talk to me, and admins:",
        f"- users: {join_names(sorted(users))}",
        f"- roles: {join_names(sorted(roles))}",
    ]
    if scope.users or scope.roles:
        lines.append(f"- by the configuration: {join_names(sorted(scope.users | scope.roles))}")
    return private_reply(*lines)


async def _has_list(work: UnitOfWork, context: CommandContext) -> bool:
    scope = context.caller.account_policy.scope
    return bool(
        scope.users
        or scope.roles
        or await _load_allowed(work, context, AllowedKind.USER)
        or await _load_allowed(work, context, AllowedKind.ROLE)
    )


async def _load_allowed(work: UnitOfWork, context: CommandContext, kind: AllowedKind) -> frozenset[str]:
    return await work.inbox.list_allowed(context.caller.account, context.command.room.platform, kind)


async def _read_subject(context: CommandContext) -> tuple[AllowedKind, str, str]:
    """Returns the kind, the id, and what the caller wrote."""
    user, role = context.option("user"), context.option("role")
    if bool(user) == bool(role):
        raise InvalidInput(
            "Name one user or one role.", code="allow_whom", fix=f"Write /allow {context.command.group} user: @Name."
        )
    if user:
        return AllowedKind.USER, await context.find_user(user), user
    return AllowedKind.ROLE, await context.find_role(role), role


async def _suggest_allowed(kind: AllowedKind, context: CommandContext, typed: str) -> Sequence[str]:
    async with context.store.work(write=False) as work:
        return rank_suggestions(typed, sorted(await _load_allowed(work, context, kind)))


ALLOW = CommandDefinition(
    CommandSpec(
        "allow",
        "Set who may talk to the agent.",
        groups=(
            CommandSpec("add", "Put a user or a role on the list.", _ADD_OPTIONS),
            CommandSpec("remove", "Take a user or a role off the list.", _REMOVE_OPTIONS),
            CommandSpec("list", "See who may talk to the agent."),
        ),
        admin_only=True,
    ),
    _allow,
    {kind.value: partial(_suggest_allowed, kind) for kind in AllowedKind},
)


OBSERVER_ACTIONS = ("enable", "disable", "reset", "status")

_NO_OBSERVER = "No observer is configured, so people are asked about calls of tier 2 and 3."


async def run_observer_command(action: str, observer: Observer | None, policy: ObserverPolicy) -> str:
    """Does one of the `OBSERVER_ACTIONS`, and returns the state afterwards in words. Raises InvalidInput for another.

    The terminal has commands of its own and calls this too, after it checked that an owner speaks.
    """
    if observer is None:
        raise NeedsAttention("There is no observer in this process.", code="observer_missing")
    match action:
        case "enable":
            await observer.turn(on=True)
        case "disable":
            await observer.turn(on=False)
        case "reset":
            await observer.reset()
            return "The observer's verdicts are forgotten: it looks at every call anew."
        case "status":
            pass
        case _:
            ways = ", ".join(f"/observer {each}" for each in OBSERVER_ACTIONS)
            raise InvalidInput(f"/observer has no '{action}'.", code="command_usage", fix=f"Write one of: {ways}.")
    return await _describe_observer(observer, policy)


async def _describe_observer(observer: Observer, policy: ObserverPolicy) -> str:
    switch = await observer.load()
    if not switch.is_on:
        return (
            "The observer is switched off: people are asked about calls of tier 2 and 3. "
            "/observer enable switches it on."
        )
    if not policy.model:
        return f"{_NO_OBSERVER}\nfix: The operator writes gate.observer.model in denizen.yaml."
    kept = count_noun(observer.kept, "verdict")
    return (
        f"The observer is on: `{policy.model}` looks at calls of tier 2 and 3. "
        f"{kept} of this observer are kept, each for {policy.cache_ttl_s:g} s."
    )


async def _observer(context: CommandContext) -> CommandReply:
    services, action = context.services, context.command.group
    said = await run_observer_command(action, services.observer, context.generation.policy.observer)
    # Switching off a safeguard is written to the audit log.
    if action != "status":
        await AuditLog(services.store, services.clock).switch(context.caller.principal, "observer", action)
    return CommandReply(said)


OBSERVER = CommandDefinition(
    CommandSpec(
        "observer",
        "Switch or clear the model that looks at risky calls (owners only).",
        groups=(
            CommandSpec("enable", "Let it look at calls of tier 2 and 3."),
            CommandSpec("disable", "Ask people instead."),
            CommandSpec("reset", "Forget its verdicts."),
            CommandSpec("status", "See whether it looks, and with which model."),
        ),
        admin_only=True,
    ),
    _observer,
)
