"""`POST /api/sandbox/shell`: the read-only shell over what an agent knows, for programs.

The body has `command`, or `commands` (1 to 10), each of 1 to 2000 characters. With `sessionId` the commands run in an
earlier session of the caller; `agent` names another agent than the default one. Each request is a call of the agent's
tool `bash` or `bash_batch`: an agent without these tools has no shell here either, and the gate decides about the call
and records it.
"""

from __future__ import annotations

from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from denizen.domain.errors import InvalidInput, Unavailable, read_explanation
from denizen.engine.external.requests import DirectCall, DirectCalls
from denizen.ports.sandbox import MAX_COMMAND_CHARS, MAX_COMMANDS, ShellReply
from denizen.web.http.auth import get_principal
from denizen.web.http.openapi import NUMBER, TEXT, ApiRoute, Operation, Schema, list_schema, object_schema
from denizen.web.http.request import JsonBody, field_error, read_object, read_text
from denizen.web.http.routing import Access
from denizen_sdk.shell import CommandOutput, ShellAnswer

MAX_ID_CHARS = 200

_COMMAND: Schema = {"type": "string", "minLength": 1, "maxLength": MAX_COMMAND_CHARS}
_COMMANDS: Schema = {"type": "array", "items": _COMMAND, "minItems": 1, "maxItems": MAX_COMMANDS}
_REQUEST: Schema = {
    **object_schema(
        command=_COMMAND, commands=_COMMANDS, sessionId={"type": "string", "maxLength": MAX_ID_CHARS}, agent=TEXT
    ),
    "oneOf": [{"required": ["command"]}, {"required": ["commands"]}],
}
_OUTPUT = object_schema("stdout", "stderr", "exitCode", stdout=TEXT, stderr=TEXT, exitCode=NUMBER)
_NAMED_OUTPUT = object_schema(
    "command", "stdout", "stderr", "exitCode", command=TEXT, stdout=TEXT, stderr=TEXT, exitCode=NUMBER
)
_ANSWER: Schema = {
    "oneOf": [
        {**object_schema("sessionId", sessionId=TEXT), "allOf": [_OUTPUT]},
        object_schema("sessionId", "results", sessionId=TEXT, results=list_schema(_NAMED_OUTPUT)),
    ]
}


class SandboxRoutes:
    """The route of the shell."""

    def __init__(self, calls: DirectCalls) -> None:
        self._calls = calls

    @property
    def routes(self) -> list[ApiRoute]:
        return [
            ApiRoute(
                "POST",
                "/api/sandbox/shell",
                self.shell,
                Access.MEMBER,
                Operation("Run one command, or a batch, in the shell", _REQUEST, _ANSWER),
            )
        ]

    async def shell(self, request: Request) -> Response:
        """Runs the commands. One that is not allowed makes the answer a 400, which names what is; the other commands of
        the batch have run by then.
        """
        body = await read_object(request)
        commands, is_single = read_commands(body)
        session = read_text(body, "sessionId")
        if len(session) > MAX_ID_CHARS:
            raise field_error("sessionId", f"a text of at most {MAX_ID_CHARS} characters")
        wanted = DirectCall(
            get_principal(request),
            "bash" if is_single else "bash_batch",
            {"command": commands[0]} if is_single else {"commands": [*commands]},
            agent=read_text(body, "agent"),
            shell_session=session,
        )
        done = await self._calls.make(wanted)
        if done.shell is None:
            told = read_explanation(done.result.text)
            raise Unavailable(told.message, code="shell_unavailable", why=told.why, fix=told.fix)
        reply = done.shell
        _check_allowed(reply)
        answer = ShellAnswer(
            reply.session_id,
            tuple(
                CommandOutput(each.stdout, each.stderr, each.exit_code, "" if is_single else each.command)
                for each in reply.results
            ),
        )
        return JSONResponse(answer.to_wire(is_single=is_single))


def read_commands(body: JsonBody) -> tuple[list[str], bool]:
    """Returns the commands, and whether it is a single one. Raises InvalidInput."""
    single, batch = body.get("command"), body.get("commands")
    if (single is None) == (batch is None):
        fix = 'Send {"command": "ls"}, or {"commands": ["ls"]}.' if single is None else "Leave one of them out."
        raise InvalidInput("Send either 'command' or 'commands'.", code="field_invalid", fix=fix)
    given: list[Any] = cast("list[Any]", batch) if isinstance(batch, list) else [single]
    if batch is not None and not isinstance(batch, list):
        raise field_error("commands", "a list of texts")
    if not 1 <= len(given) <= MAX_COMMANDS:
        raise field_error("commands", f"a list of 1 to {MAX_COMMANDS} commands")
    for each in given:
        if not isinstance(each, str) or not 1 <= len(each) <= MAX_COMMAND_CHARS:
            raise field_error("command", f"a text of 1 to {MAX_COMMAND_CHARS} characters")
    return given, batch is None


def _check_allowed(reply: ShellReply) -> None:
    """Raises InvalidInput that gives the reason for each refused command, and the commands that are allowed."""
    refused = [each for each in reply.results if each.refused]
    if not refused:
        return
    told = [each.stderr.strip().removeprefix("refused: ") for each in refused]
    if len(reply.results) > 1:
        told = [f"{each.command}: {why}" for each, why in zip(refused, told, strict=True)]
    raise InvalidInput(
        "The shell only reads, and this is not allowed in it.",
        code="command_refused",
        why="\n".join(told),
        fix="Use grep, find, ls, cat, head, tail, wc, sort, uniq, cut, sed, awk, jq, xargs, for with | && ; and "
        "relative paths.",
    )
