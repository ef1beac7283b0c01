"""Commands and buttons: what people do on a platform besides writing messages to the agent.

A command comes from the platform's menu or is typed as text. A button says a value for the one who pressed it, decides
about a call that waits for approval, or answers a question to the owner.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from denizen.domain.agent import Agent
from denizen.domain.approval import VoteOutcome
from denizen.domain.attention import AuthorFacts, MessageFacts
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import NotAllowed, NotFound
from denizen.domain.ids import AgentName, fresh
from denizen.domain.json import JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.question import read_answer_action
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import ReplyTarget, RequestOptions, Sender, SessionChoice, Turn, TurnRequest
from denizen.engine.commands.command import CallerContext, CommandCatalogs, CommandDeps, UserDataAccess
from denizen.engine.commands.dispatch import CommandDispatcher
from denizen.engine.commands.text import ParsedCommand
from denizen.engine.gate.approval_card import read_action
from denizen.engine.listener.background import BackgroundTasks
from denizen.engine.listener.context import AccountContext
from denizen.engine.listener.cursors import ReadCursors
from denizen.engine.listener.reading import MessageReader
from denizen.engine.listener.turn_display import TurnDisplay
from denizen.engine.listener.turn_start import StartedTurn, TurnStarter
from denizen.engine.loop.services import EngineServices
from denizen.engine.workflows.catalog import WORKFLOWS
from denizen.ports.channel import ButtonPress, CommandCall, CommandReply, CommandSpec, IncomingMessage
from denizen.ports.inbox import COMMAND

DONE_SIGN = "\N{WHITE HEAVY CHECK MARK}"

_log = logging.getLogger("denizen.listener")


@record(kw_only=True)
class _Question:
    """A question that a command or a button asks the agent. `key` is unique on the platform."""

    room: Room
    author: Author
    roles: frozenset[str]
    key: str
    reply_to: str = ""
    ticket: str = ""


class InteractionHandler:
    """Handles the commands and buttons of one account."""

    def __init__(
        self,
        context: AccountContext,
        reader: MessageReader,
        starter: TurnStarter,
        display: TurnDisplay,
        *,
        services: EngineServices,
        user_data: UserDataAccess,
        catalogs: CommandCatalogs,
    ) -> None:
        self._context = context
        self._reader = reader
        self._starter = starter
        self._display = display
        self._commands = CommandDispatcher(
            CommandDeps(
                runtime=context.runtime,
                services=services,
                open_turn=self._open_turn,
                lock_session=context.turns.hold,
                user_data=user_data,
                catalogs=catalogs,
            )
        )

    # --- commands ----------------------------------------------------------------------------------------------------

    @property
    def commands(self) -> Sequence[CommandSpec]:
        return self._commands.specs(self._context.account)

    def parse_command(self, text: str) -> ParsedCommand | None:
        return self._commands.parse_text(text)

    async def run_command(self, call: CommandCall) -> CommandReply:
        return await self._commands.run(call, self._describe_caller(call))

    async def suggest(self, call: CommandCall, option: str, typed: str) -> Sequence[str]:
        return await self._commands.suggest(call, option, typed, self._describe_caller(call))

    def _describe_caller(self, call: CommandCall) -> CallerContext:
        context, place = self._context, call.room.place

        def find_session_place(agent: Agent) -> Place:
            return self._starter.choose_session_place(agent.name, call.room, place, call.author_id) or place

        return CallerContext(
            account=context.account,
            account_policy=context.account_policy,
            principal=context.principal(Author(call.author_id, call.author_name), call.roles),
            find_session_place=find_session_place,
            find_names=context.channel.find_names,
        )

    async def _open_turn(
        self,
        call: CommandCall,
        text: str,
        *,
        agent: str = "",
        new_session: bool = False,
        workflow: JsonObject | None = None,
    ) -> Turn:
        """Opens the turn of a command. Its answer uses the command's ticket, or is a reply when it was typed."""
        question = _Question(
            room=call.room,
            author=Author(call.author_id, call.author_name),
            roles=call.roles,
            key=f"command:{call.id}" if call.ticket else call.id,
            reply_to="" if call.ticket else call.id,
            ticket=call.ticket,
        )
        return await self._submit(question, text, agent=agent, new_session=new_session, workflow=workflow)

    # --- buttons -----------------------------------------------------------------------------------------------------

    async def press(self, press: ButtonPress) -> str:
        """Handles a pressed button. Returns what to say to the one who pressed it, and to nobody else."""
        if question := read_answer_action(press.action):
            voter = self._context.principal(Author(press.author_id, press.author_name), press.roles)
            await self._context.turns.questions.answer(question, voter, press.why)
            return ""
        if press.action:
            return await self._decide_call(press)
        await self._say_value(press)
        return ""

    async def _decide_call(self, press: ButtonPress) -> str:
        """Decides about a call that waits. Returns the outcome where the card of the call does not show it.

        Raises NotAllowed for somebody who may not decide it.
        """
        read = read_action(press.action)
        if read is None:
            raise NotFound("This button does not work any more.", code="button_unknown")
        choice, key = read
        voter = self._context.principal(Author(press.author_id, press.author_name), press.roles)
        ruling = await self._context.turns.approvals.decide(key, voter, choice, note=press.why)
        return "" if ruling.outcome is VoteOutcome.DECIDED else ruling.text

    async def _say_value(self, press: ButtonPress) -> None:
        """Says the button's value to the agent for the one who pressed it, where that one could have said it."""
        question = _Question(
            room=press.room,
            author=Author(press.author_id, press.author_name),
            roles=press.roles,
            key=f"press:{press.id}",
            reply_to=press.message_id,
        )
        facts = MessageFacts(room=press.room, author=AuthorFacts(id=press.author_id, roles=press.roles))
        if not (await self._reader.decide_request(facts)).answers:
            raise NotAllowed("You may not talk with me here.", code="not_allowed")
        if not await self._context.channel.may_post(press.room.place):
            raise NotAllowed("I may not write here any more, so I cannot answer.", code="cannot_post")
        # The model is told that it was a button: whoever pressed it read its label, not necessarily what it says.
        said = f'chose, under your message "{press.about}"' if press.about else "pressed a button, which says"
        await self._submit(question, f"[{said}:] {press.value}")

    async def _submit(
        self,
        question: _Question,
        text: str,
        *,
        agent: str = "",
        new_session: bool = False,
        workflow: JsonObject | None = None,
    ) -> Turn:
        context, place, author = self._context, question.room.place, question.author
        principal = context.principal(author, question.roles)
        chosen, model = await self._starter.choose_agent(place, principal)
        name = AgentName(agent) if agent else chosen
        session = self._starter.choose_session_place(name, question.room, place, author.id)
        if workflow:  # each run has a session of its own
            session = own_place(WORKFLOWS, str(workflow["name"]), question.key)
        turn = await context.turns.submit(
            TurnRequest(
                agent=name,
                place=place,
                sender=Sender(author, principal, self._starter.choose_reach(author, question.room)),
                parts=(TextPart(text),),
                platform_id=question.key,
                shared=question.room.kind is not RoomKind.DIRECT,
                owed=ReplyTarget(
                    context.account,
                    reply_to=question.reply_to,
                    ticket=question.ticket,
                    answers=(question.key,),
                    guild=question.room.guild,
                ),
                session=SessionChoice(session, new_session),
                options=RequestOptions(model=model, workflow=workflow or {}),
            )
        )
        self._display.show(StartedTurn(turn, place, question.reply_to))
        return turn


class TypedCommands:
    """Runs the commands that people type as text, for one account.

    They run in the background: some commands wait for a turn to end, and the room's other messages go on meanwhile.
    """

    def __init__(
        self,
        context: AccountContext,
        starter: TurnStarter,
        cursors: ReadCursors,
        interactions: InteractionHandler,
        background: BackgroundTasks,
    ) -> None:
        self._context = context
        self._starter = starter
        self._cursors = cursors
        self._interactions = interactions
        self._background = background
        self._running: set[str] = set()

    def is_running(self, post_id: str) -> bool:
        return post_id in self._running

    def take(self, message: IncomingMessage) -> bool:
        """Starts the command that the message gives. Returns False for a message that is no command."""
        post, parsed = message.post, self._interactions.parse_command(message.command or message.question)
        # What an agent writes is a question, whoever made it write that. So is what somebody else may have edited.
        if parsed is None or post.author.is_bot or message.is_unsure:
            return False
        options, named = parsed.options, message.mentions
        is_for_all = message.room.is_thread and not (named.users or named.roles or named.replies_to_me)
        if parsed.name == "reset" and is_for_all:
            options = {"all": "yes", **options}
        call = CommandCall(
            id=post.id,
            name=parsed.name,
            group=parsed.group,
            options=options,
            room=message.room,
            author_id=post.author.id,
            author_name=post.author.name,
            roles=message.roles,
            created_at=post.created_at,
            target=post.reply_to,
        )
        self._running.add(post.id)
        self._cursors.hold(message.room.id)
        self._background.start("a command", self._run_and_answer, message, call)
        return True

    async def _run_and_answer(self, message: IncomingMessage, call: CommandCall) -> None:
        """The room's cursor is held meanwhile: a command that a crash cuts off is read again by the next process."""
        is_cut_off = False
        try:
            await self._answer(message, call, await self._run(call))
        except anyio.get_cancelled_exc_class():
            is_cut_off = True
            raise
        finally:
            self._running.discard(message.post.id)
            if not is_cut_off:
                self._cursors.release(message.room.id)

    async def _answer(self, message: IncomingMessage, call: CommandCall, reply: CommandReply) -> None:
        if reply.is_pending:
            return
        # `/reset` is answered with a sign instead of words.
        if call.name == "reset" and not reply.is_failure:
            await self._starter.say(message, "", sign=DONE_SIGN, refusal=COMMAND)
            return
        failed = self._context.account_policy.style.reactions.failed
        sign = failed if reply.is_failure and call.name == "reset" else ""
        await self._starter.say(message, reply.text, sign=sign, refusal=COMMAND)

    async def _run(self, call: CommandCall) -> CommandReply:
        try:
            return await self._interactions.run_command(call)
        except Exception:  # noqa: BLE001 - the boundary of a command
            reference = fresh("err")
            _log.exception("command fault", extra={"command": call.name, "reference": reference})
            return CommandReply(f"Something went wrong inside. Reference: {reference}.", is_failure=True)
