"""Commands that people type as text (inventory T36). Called by `resident`."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from denizen.domain.ids import fresh
from denizen.engine.commands.commands import Commands
from denizen.engine.resident.asking import Asking
from denizen.engine.resident.positions import Positions
from denizen.engine.resident.receiver import Receiver
from denizen.ports.channel import CommandCall, CommandReply, IncomingMessage

DONE_SIGN = "\N{WHITE HEAVY CHECK MARK}"

_log = logging.getLogger("denizen.resident")


class TypedCommands:
    """For one account. `start` runs `obey` beside the room's other messages: some commands wait for a turn to end."""

    def __init__(
        self,
        receiver: Receiver,
        positions: Positions,
        commands: Commands,
        asking: Asking,
        *,
        start: Callable[[IncomingMessage, CommandCall], None],
    ) -> None:
        self._receiver = receiver
        self._positions = positions
        self._commands = commands
        self._asking = asking
        self._start = start
        self._obeying: set[str] = set()

    def is_obeying(self, post_id: str) -> bool:
        return post_id in self._obeying

    def take(self, arrival: IncomingMessage) -> bool:
        """False for a message that is no command. What an agent says is a question, whoever made it say that, and so is
        what somebody else may have edited.
        """
        post, typed = arrival.post, self._commands.parse_text(arrival.question)
        if typed is None or post.author.is_bot or arrival.is_unsure:
            return False
        name, group, options = typed
        call = CommandCall(
            post.id, name, group, options, arrival.room, post.author.id, post.author.name, arrival.roles,
            post.created_at, target=post.reply_to,
        )  # fmt: skip
        self._obeying.add(post.id)
        self._positions.hold(arrival.room.id)
        self._start(arrival, call)
        return True

    async def obey(self, arrival: IncomingMessage, call: CommandCall) -> None:
        """The room's position waits for it, so that a crash does not lose it; one that was cut off is read again by the
        next process. `/reset` is answered with a sign (inventory C19).
        """
        is_cut = False
        try:
            await self._answer(arrival, call, await self._run(call))
        except anyio.get_cancelled_exc_class():
            is_cut = True
            raise
        finally:
            self._obeying.discard(arrival.post.id)
            if not is_cut:
                self._positions.release(arrival.room.id)

    async def _answer(self, arrival: IncomingMessage, call: CommandCall, reply: CommandReply) -> None:
        if reply.is_pending:
            return
        if call.name == "reset" and not reply.is_failure:
            await self._receiver.say(arrival, "", sign=DONE_SIGN)
            return
        failed = self._receiver.desk.manners.reactions.failed
        await self._receiver.say(arrival, reply.text, sign=failed if reply.is_failure and call.name == "reset" else "")

    async def _run(self, call: CommandCall) -> CommandReply:
        try:
            return await self._commands.run(call, self._asking.scene(call))
        except Exception:  # noqa: BLE001 - the boundary of a command
            reference = fresh("err")
            _log.exception("command fault", extra={"command": call.name, "reference": reference})
            return CommandReply(f"Something went wrong inside. Reference: {reference}.", is_failure=True)
