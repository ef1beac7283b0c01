"""Commands in the chats of the web: which of them somebody may give there, and running one that was typed.

The room is the caller's own chat, so that a command which acts on the session acts on the chat. `/agent` changes the
agent of the chat, and the turn of a command is one of the chat. A command that has begun runs to its end, also when its
reader leaves.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import MappingProxyType

import anyio

from denizen.domain.agent import Agent
from denizen.domain.approval import AskerReach
from denizen.domain.attention import AccountPolicy, ReplyStyle
from denizen.domain.chat import Chat, ChatId, ChatMode, check_chat_id
from denizen.domain.conversation import Place, own_place
from denizen.domain.errors import InvalidInput, NotAllowed
from denizen.domain.events import Notice, TurnEvent
from denizen.domain.handover import BACK, is_exit
from denizen.domain.ids import AgentName
from denizen.domain.json import JsonObject
from denizen.domain.message import Author, TextPart
from denizen.domain.principal import Principal
from denizen.domain.record import record
from denizen.domain.room import Room, RoomKind
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest
from denizen.engine.chats.chats import Chats
from denizen.engine.chats.live_chats import TitleChanged
from denizen.engine.chats.reading import WEB
from denizen.engine.commands.command import CallerContext, CommandCatalogs, CommandContext, CommandDeps, UserDataSummary
from denizen.engine.commands.dispatch import CommandDispatcher, PermissionLevel
from denizen.engine.configuration.generation import Runtime
from denizen.engine.loop.services import EngineServices
from denizen.engine.turn import TurnRunner
from denizen.engine.workflows.catalog import WORKFLOWS
from denizen.ports.channel import CommandCall, CommandReply, CommandSpec, MentionNames, ProgramOutput
from denizen.ports.store import Store

MAX_REPLY_CHARS = 20_000

LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "ask": "Whatever you write in a chat is a question to its agent.",
        "allow": "Its list is for the accounts on platforms; here people are invited, and have roles.",
    }
)
"""The built-in commands that are not given in chats, with the reason."""


@record(kw_only=True)
class ChatCommand:
    """A command that somebody typed. `session` names the session of theirs that it is about; with `is_chat` that is a
    chat, which has one agent at a time. Without `agent` it is the chat's, or else the default one. `key` is the same
    for a request that is repeated.
    """

    text: str
    caller: Principal
    session: str
    key: str
    is_chat: bool = False
    agent: str = ""
    reach: AskerReach = AskerReach.WATCHER


@record
class CommandDone:
    """The end of a command that started no turn: its reply, and the agent that the chat or session has now."""

    reply: CommandReply
    agent: AgentName


ChatCommandEvent = ProgramOutput | CommandDone | TurnEvent | TitleChanged


@record
class ChatCommands:
    """The commands in chats of all people."""

    runtime: Runtime
    services: EngineServices
    turns: TurnRunner
    chats: Chats
    catalogs: CommandCatalogs

    async def list_offered(
        self, caller: Principal, session: str, agent: str
    ) -> Sequence[tuple[CommandSpec, PermissionLevel]]:
        """Returns the commands that somebody may give in a session of theirs, with the level that each needs. Raises
        NotFound for an unknown agent.
        """
        running = _RunningCommand(self, ChatCommand(text="/help", caller=caller, session=session, key="", agent=agent))
        return await running.dispatcher.list_offered(running.describe_call("help", "", {}), running.caller)

    async def run(self, typed: ChatCommand) -> AsyncGenerator[ChatCommandEvent]:
        """Runs a command, and yields what its program printed, and then what happens in the turn that it started, or
        its reply. A reply that the program's output is all of has no text. `!exit` ends a hand-over.

        Raises InvalidInput for a text that gives no command, NotFound for an unknown agent, and what keeps a turn from
        being opened. What else the command cannot do, its reply says.
        """
        owner = typed.caller.key
        chat = await self.chats.find(owner, check_chat_id(typed.session)) if typed.is_chat else None
        handed = await self.services.handovers.find_in_session(own_place(WEB, owner, typed.session))
        named = self.runtime.current.agent(typed.agent or (chat.agent if chat is not None else "")).name
        text = f"/handover {BACK}" if is_exit(typed.text) else typed.text
        typed = replace(typed, agent=self.services.handovers.choose_agent(handed, named), text=text)
        running = _RunningCommand(self, typed, chat)
        if chat is not None and running.agent != chat.agent:
            # The next message would hand the chat over, and so does a command that is about the session.
            await self.chats.change(owner, chat.id, agent=running.agent)
        reply = await running.run()
        if reply.output is not None:
            yield reply.output
        if reply.updates is not None:
            yield Notice(reply.text)
            async with aclosing(reply.updates) as texts:
                async for text in texts:
                    reply = replace(reply, text=text)
                    yield Notice(text)
        if not reply.is_pending:
            self.chats.tell_changed(running.place.conversation_id)
            # The command may have begun or ended a hand-over.
            handed = await self.services.handovers.find_in_session(running.place)
            yield CommandDone(reply, self.services.handovers.choose_agent(handed, running.agent))
            return
        mode = chat.mode if chat is not None else ChatMode.CHAT
        async with aclosing(self.chats.stream(running.asked, mode=mode, is_plain=not typed.is_chat)) as events:
            async for event in events:
                yield event


class _RunningCommand:
    """One command: its room, its caller, and the turn that it asks for."""

    def __init__(self, engine: ChatCommands, typed: ChatCommand, chat: Chat | None = None) -> None:
        """Raises NotFound for an unknown agent, InvalidInput for a session's name that is not allowed."""
        self._engine = engine
        self._typed = typed
        self._asked: TurnRequest | None = None
        named = typed.agent or (chat.agent if chat is not None else "")
        self.agent = AgentName(engine.runtime.current.agent(named).name)
        self.place = own_place(WEB, typed.caller.key, typed.session)
        self.dispatcher = CommandDispatcher(
            CommandDeps(
                runtime=engine.runtime,
                services=engine.services,
                open_turn=self._ask,
                lock_session=engine.turns.hold,
                user_data=ChatUserData(engine.services.store, engine.chats, typed.caller),
                catalogs=engine.catalogs,
                choose_agent=self._choose_agent,
            ),
            LEFT_OUT,
        )

    @property
    def asked(self) -> TurnRequest:
        """The turn of a command whose reply is pending."""
        assert self._asked is not None  # as such a command has asked for one
        return self._asked

    @property
    def caller(self) -> CallerContext:
        agents = frozenset(self._engine.runtime.current.agents)
        return CallerContext(
            account=self._engine.runtime.current.default_agent,
            # In chats everybody may choose any agent, as in the list of agents beside them.
            account_policy=AccountPolicy(style=ReplyStyle(message_limit=MAX_REPLY_CHARS), switchable=agents),
            principal=self._typed.caller,
            find_session_place=self._find_session_place,
            find_names=_find_no_names,
            answering=self.agent,
        )

    def describe_call(self, name: str, group: str, options: Mapping[str, str]) -> CommandCall:
        typed = self._typed
        return CommandCall(
            id=typed.key,
            name=name,
            group=group,
            options=options,
            room=Room(WEB, typed.session, typed.session, kind=RoomKind.PRIVATE_THREAD, parent=typed.caller.key),
            author_id=typed.caller.id,
            author_name=typed.caller.name,
            roles=frozenset(),
            created_at=self._engine.services.clock.now(),
            ticket=typed.key,  # nobody else reads the reply
        )

    async def run(self) -> CommandReply:
        parsed = self.dispatcher.parse_text(self._typed.text)
        if parsed is None:
            raise InvalidInput(
                "This is no command.", code="command_none", why="a command is a name behind `/`", fix="Send `/help`."
            )
        call, caller, reply = self.describe_call(*parsed), self.caller, CommandReply()
        with anyio.CancelScope(shield=True):
            reply = await self.dispatcher.run(call, caller)
        return replace(reply, text="") if reply.output is not None and not reply.is_pending else reply

    def _find_session_place(self, agent: Agent) -> Place:
        del agent  # all agents of a chat have their sessions there
        return self.place

    async def _ask(
        self,
        call: CommandCall,
        text: str,
        *,
        agent: str = "",
        new_session: bool = False,
        workflow: JsonObject | None = None,
    ) -> None:
        typed, home = self._typed, None
        if workflow:  # each run has a session of its own
            home = own_place(WORKFLOWS, str(workflow["name"]), call.id)
        self._asked = TurnRequest(
            agent=AgentName(self._engine.runtime.current.agent(agent or self.agent).name),
            place=self.place,
            sender=Sender(Author(typed.caller.id, typed.caller.name), typed.caller, typed.reach),
            parts=(TextPart(text),),
            platform_id=f"command:{call.id}",
            session=SessionChoice(home, is_new=new_session),
            options=RequestOptions(workflow=workflow or {}),
        )

    async def _choose_agent(self, context: CommandContext, agent: AgentName) -> None:
        del context
        typed = self._typed
        if not typed.is_chat:
            raise NotAllowed(
                "A session that is no chat has no agent of its own.",
                code="agent_of_request",
                why="each message names the agent that answers it",
                fix="Name it with the message.",
            )
        chat = await self._engine.chats.create(typed.caller, ChatId(typed.session), agent=agent)
        await self._engine.chats.change(typed.caller.key, chat.id, agent=agent)
        self.agent = agent


async def _find_no_names(place: Place, text: str) -> MentionNames:
    """Nobody else is in a chat."""
    del place, text
    return MentionNames()


@record
class ChatUserData:
    """The words of somebody in chats of their own. Nothing of them is archived."""

    store: Store
    chats: Chats
    owner: Principal

    async def describe(self, platform: str, user_id: str) -> UserDataSummary:
        async with self.store.work(write=False) as work:
            kept = await work.archive.count_author(platform, user_id)
        return UserDataSummary(kept.posts, kept.messages, is_opted_out=False)

    async def forget(self, platform: str, user_id: str) -> int:
        """Deletes all chats of the owner. Returns 0, since there are no posts."""
        del platform, user_id
        await self.chats.forget_owner(self.owner.key)
        return 0

    async def opt_out(self, platform: str, user_id: str) -> None:
        del platform, user_id
        raise _nothing_archived()

    async def opt_in(self, platform: str, user_id: str) -> None:
        del platform, user_id
        raise _nothing_archived()


def _nothing_archived() -> NotAllowed:
    return NotAllowed(
        "Chats are not archived.",
        code="chats_not_archived",
        why="the archive holds the posts of platforms such as Discord",
        fix="Delete chats that should not be kept, or give /memory forget.",
    )
