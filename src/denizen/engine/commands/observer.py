"""`/observer`: the model that looks at risky calls, switched and cleared by owners while Denizen runs (inventory V22).

Switched off, people are asked in its place: nothing runs unseen. Whoever offers commands of their own (the terminal)
calls `obey`, after seeing to it that an owner speaks.
"""

from __future__ import annotations

from denizen.domain.errors import InvalidInput, NeedsAttention
from denizen.engine.audit import Ledger
from denizen.engine.commands.scene import Command, Given
from denizen.engine.commands.words import counted
from denizen.engine.gate.observer import Observer
from denizen.engine.gate.policy import ObserverPolicy
from denizen.ports.channel import CommandReply, CommandSpec

WAYS = ("enable", "disable", "reset", "status")

_NO_OBSERVER = "No observer is configured, so people are asked about calls of tier 2 and 3."


async def obey(way: str, observer: Observer | None, policy: ObserverPolicy) -> str:
    """Does it, and says what holds now. Raises InvalidInput for what is none of the `WAYS`."""
    if observer is None:
        raise NeedsAttention("There is no observer in this process.", code="observer_missing")
    match way:
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
            ways = ", ".join(f"/observer {each}" for each in WAYS)
            raise InvalidInput(f"/observer has no '{way}'.", code="command_usage", fix=f"Write one of: {ways}.")
    return await _describe_observer(observer, policy)


async def _describe_observer(observer: Observer, policy: ObserverPolicy) -> str:
    switch = await observer.load()
    if not switch.is_on:
        return (
            "The observer is switched off: people are asked about calls of tier 2 and 3. "
            "/observer enable switches it on."
        )
    if not policy.model:
        return f"{_NONE}\nfix: The operator writes gate.observer.model in denizen.yaml."
    kept = counted(observer.kept, "verdict")
    return (
        f"The observer is on: `{policy.model}` looks at calls of tier 2 and 3. {kept} of it are kept here, each for "
        f"{policy.cache_ttl_s:g} s."
    )


async def _observer(given: Given) -> CommandReply:
    services, way = given.on.services, given.command.group
    said = await obey(way, services.observer, given.generation.policy.observer)
    if way != "status":
        await Ledger(services.store, services.clock).switch(given.at.principal, "observer", way)
    return CommandReply(said)


OBSERVER = Command(
    CommandSpec(
        "observer",
        "Switch or clear the model that looks at risky calls (owners only).",
        groups=(
            CommandSpec("enable", "Let it look at calls of tier 2 and 3."),
            CommandSpec("disable", "Have people asked in its place."),
            CommandSpec("reset", "Forget its verdicts."),
            CommandSpec("status", "See whether it looks, and with which model."),
        ),
        admin_only=True,
    ),
    _observer,
)
