"""`/api/commands` and `/api/command`: what people type behind `/`, in a chat or in a session of their own.

The commands are those of platforms, as far as they make sense in a chat. What a command does and who may give it is
decided in the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.approval import AskerReach
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.ids import TurnId
from denizen.engine.chats.live_chats import TitleChanged
from denizen.engine.commands.chat_commands import ChatCommand, ChatCommands, CommandDone
from denizen.engine.commands.dispatch import COMMANDS, PermissionLevel
from denizen.engine.commands.text import format_usage
from denizen.ports.channel import CommandOption, CommandSpec, ProgramOutput
from denizen.web.api.chat import check_message, encode_chat_event, message_key
from denizen.web.api.records import event_to_wire
from denizen.web.http.auth import get_principal
from denizen.web.http.dependencies import WebTiming
from denizen.web.http.event_stream import Chunks, EventStream, StreamOptions
from denizen.web.http.openapi import ApiRoute, Operation
from denizen.web.http.problems import describe_problem, fill_in
from denizen.web.http.request import (
    IDEMPOTENCY_HEADER,
    QueryParameter,
    check_field_names,
    read_flag,
    read_object,
    read_text,
)
from denizen.web.http.routing import Access
from denizen_sdk.commands import CommandInfo, CommandOptionInfo, CommandRequest, SubcommandInfo
from denizen_sdk.turns import (
    MAX_OUTPUT_CHARS,
    TURN_EVENTS,
    CommandFinishedEvent,
    ShellOutputEvent,
    TitleEvent,
    TurnFailedEvent,
)

_AGENT = QueryParameter(name="agent", description="Name of an agent; empty for the default one.")
_ALLOWED = {PermissionLevel.ADMIN: "admins", PermissionLevel.OWNER: "owners"}


class CommandRoutes:
    """The routes that list commands and run them."""

    def __init__(self, commands: ChatCommands, timing: WebTiming) -> None:
        self._commands = commands
        self._timing = timing

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "GET",
                "/api/commands",
                self.list_commands,
                Access.MEMBER,
                Operation("The commands that the caller may give", answer=list[CommandInfo], query=(_AGENT,)),
            ),
            ApiRoute(
                "POST",
                "/api/command",
                self.run,
                Access.MEMBER,
                Operation(
                    "Give a command and watch what it does",
                    CommandRequest,
                    stream="Each event's data is a JSON object with its `type`.",
                    events=(*TURN_EVENTS, TitleEvent, ShellOutputEvent, CommandFinishedEvent),
                    headers=("Idempotency-Key",),
                ),
            ),
        ]

    async def list_commands(self, request: Request) -> Response:
        offered = await self._commands.list_offered(get_principal(request), "default", _AGENT.read_text(request))
        return JSONResponse([asdict(command_to_wire(spec, level)) for spec, level in offered])

    async def run(self, request: Request) -> Response:
        body = await read_object(request)
        check_field_names(body, CommandRequest.__dataclass_fields__)
        chat, session, principal = read_text(body, "chat"), read_text(body, "session"), get_principal(request)
        if chat and session:
            raise InvalidInput("Name a chat or a session, not both.", code="command_where", fix="Leave out `session`.")
        typed = ChatCommand(
            text=check_message(read_text(body, "input")),
            caller=principal,
            session=chat or session or "default",
            key=message_key(principal, request.headers.get(IDEMPOTENCY_HEADER, "")),
            is_chat=bool(chat),
            agent=read_text(body, "agent"),
            reach=AskerReach.WATCHER if read_flag(body, "wait_for_approval", default=True) else AskerReach.NOBODY,
        )
        return EventStream(self._stream(typed), self._options(), {})

    async def _stream(self, typed: ChatCommand) -> Chunks:
        async with aclosing(self._commands.run(typed)) as events:
            async for event in events:
                match event:
                    case ProgramOutput():
                        text, is_cut = event.text[:MAX_OUTPUT_CHARS], len(event.text) > MAX_OUTPUT_CHARS
                        yield encode_chat_event(ShellOutputEvent(text, event.is_error, is_cut))
                    case CommandDone():
                        reply = event.reply
                        yield encode_chat_event(CommandFinishedEvent(reply.text, event.agent, reply.is_failure))
                    case TitleChanged():
                        yield encode_chat_event(TitleEvent(event.title))
                    case _:
                        for sent in event_to_wire(event, typed.caller):
                            yield encode_chat_event(sent)

    def _options(self) -> StreamOptions:
        def encode_error(error: DenizenError) -> bytes:
            return encode_chat_event(TurnFailedEvent(TurnId(""), fill_in(describe_problem(error))))

        return StreamOptions(
            on_error=encode_error,
            on_gone=lambda: None,
            start_after_s=self._timing.chat_start_s,
            keep_alive_s=self._timing.keep_alive_s,
        )


def command_to_wire(spec: CommandSpec, level: PermissionLevel) -> CommandInfo:
    return CommandInfo(
        name=spec.name,
        description=spec.description,
        usage=f"/{spec.name} {'|'.join(group.name for group in spec.groups)}" if spec.groups else format_usage(spec),
        allowed=_ALLOWED.get(level, "everybody"),
        is_configured=spec.name not in COMMANDS,
        options=_options_to_wire(spec.options),
        subcommands=tuple(
            SubcommandInfo(group.name, group.description, format_usage(spec, group), _options_to_wire(group.options))
            for group in spec.groups
        ),
    )


def _options_to_wire(options: Sequence[CommandOption]) -> tuple[CommandOptionInfo, ...]:
    return tuple(CommandOptionInfo(each.name, each.description, each.required, each.choices) for each in options)
