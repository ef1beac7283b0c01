"""`denizen chat`: an agent in the terminal, with streaming, visible tool calls, history and a few commands."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.app.model_choice import ModelChoice
from denizen.cli.approval_prompt import can_prompt, prompt_for_approvals
from denizen.cli.exit_codes import DONE
from denizen.cli.options import model_options
from denizen.cli.terminal import IN_THE_END, describe_picture, printable, stoppable
from denizen.domain.approval import AskerReach
from denizen.domain.conversation import Place
from denizen.domain.errors import DenizenError
from denizen.domain.events import Notice, ReasoningAdded, TextAdded, ToolFinished, ToolStarted, TurnEvent, TurnFinished
from denizen.domain.ids import AgentName, fresh
from denizen.domain.message import Author, TextPart
from denizen.domain.turn import RequestOptions, Sender, SessionChoice, TurnRequest, TurnStatus

if TYPE_CHECKING:
    from rich.console import Console

    from denizen.app.build import Denizen

HELP = """\
/new             start a fresh session; the old one is kept
/agent [NAME]    show the agents, or talk to another one
/model [NAME]    show the models, or answer with another one
/tools           what the agent may use
/observer WAY    enable, disable, reset or status of the model that looks at risky calls
/context         how the next prompt's tokens divide
/help            this list
/quit            leave (also Ctrl-D)
Ctrl-C stops an answer that is under way."""

_ELSEWHERE = {
    "compact": "/new begins afresh; with agents.{agent}.summaries old messages are summed up by themselves.",
    "why": "In another terminal: denizen trace --last --agent {agent}",
    "memory": "In another terminal: denizen memory list --agent {agent}",
}
"""Commands of other channels, and what to use here."""


@click.command()
@click.option("-a", "--agent", default="", help="Whom to talk to.  [default: the configured one]")
@click.option("-s", "--session", default="main", show_default=True, help="Name of the session to continue.")
@model_options
@click.pass_obj
def command(home: Path, agent: str, session: str, choice: ModelChoice) -> int:
    """Talk to an agent. The session is kept; /help lists the commands."""
    return anyio.run(_chat, home, agent, session, choice, backend_options={"use_uvloop": True})


async def _chat(home: Path, agent: str, session: str, choice: ModelChoice) -> int:
    from rich.console import Console

    from denizen.app.build import OpenOptions, open_denizen
    from denizen.cli.terminal import show_weights_progress

    console = Console(highlight=False)
    async with open_denizen(home, OpenOptions(choice, report=show_weights_progress)) as denizen:
        denizen.require_terminal()
        chat = TerminalChat(denizen, console, agent=denizen.queries.get_agent(agent).name, session=session)
        console.print(f"[bold]{chat.agent}[/] on {chat.describe_model()}. /help lists the commands.")
        read = _reader(home, console)
        while (line := await read()) is not None:
            if not line.strip():
                continue
            if not await chat.handle(line.strip()):
                break
    return DONE


Read = Callable[[], Awaitable[str | None]]


def _reader(home: Path, console: Console) -> Read:
    """Lines from the terminal with editing and history, or plain lines from a pipe; None at the end."""
    if not sys.stdin.isatty():

        async def read_pipe() -> str | None:
            line = await anyio.to_thread.run_sync(sys.stdin.readline)
            if line:
                console.print(f"> {line.rstrip()}", markup=False)
            return line or None

        return read_pipe

    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    prompt: PromptSession[str] = PromptSession(history=FileHistory(str(private_file(home / "chat_history"))))

    async def read_terminal() -> str | None:
        try:
            return await prompt.prompt_async("> ")
        except EOFError:
            return None
        except KeyboardInterrupt:
            return ""

    return read_terminal


def private_file(file: Path) -> Path:
    """The file, made when it is not there; what somebody typed is for nobody else to read."""
    file.touch(mode=0o600)
    file.chmod(0o600)
    return file


class TerminalChat:
    """One conversation in the terminal and its few commands."""

    def __init__(self, denizen: Denizen, console: Console, *, agent: str, session: str) -> None:
        self._denizen = denizen
        self._console = console
        self._session = session
        self._model = ""
        self._fresh = False
        self.agent = agent
        self._commands = {
            "new": self._new,
            "agent": self._agent,
            "model": self._choose_model,
            "tools": self._tools,
            "observer": self._observer,
            "context": self._context,
            "help": self._help,
        }

    @property
    def _place(self) -> Place:
        return Place("terminal", "chat", self._session)

    def describe_model(self) -> str:
        """The model in use, with a word about the built-in one."""
        name = self._model or self._denizen.queries.get_agent(self.agent).model
        info = next((m for m in self._denizen.queries.list_models() if name == m.name or name in m.aliases), None)
        if info is None:
            return name
        note = " (built-in small model; `denizen setup` connects a better one)" if info.is_embedded else ""
        return f"{info.name}{note}"

    async def handle(self, line: str) -> bool:
        """A command or a message; False when the user wants to leave. Errors are explained and the chat goes on."""
        try:
            if not line.startswith("/"):
                await self._say(line)
                return True
            name, _, rest = line[1:].partition(" ")
            return await self._command(name, rest.strip())
        except DenizenError as error:
            self._console.print(printable(error.explain()), style="red", markup=False)
            return True
        except KeyboardInterrupt:  # a second one, for an answer that does not stop
            return True

    async def _command(self, name: str, rest: str) -> bool:
        if name in ("quit", "exit", "q"):
            return False
        action = self._commands.get(name)
        if action is None:
            hint = _ELSEWHERE.get(name, "/help lists them.").format(agent=self.agent)
            self._console.print(f"There is no command /{name}. {hint}", markup=False, soft_wrap=True)
        else:
            await action(rest)
        return True

    async def _new(self, _: str) -> None:
        self._fresh = True
        self._console.print("A fresh session begins with your next message.")

    async def _agent(self, name: str) -> None:
        if name:
            self.agent, self._model = self._denizen.queries.get_agent(name).name, ""
            self._console.print(f"Talking to {self.agent} on {self.describe_model()}.")
            return
        for agent in self._denizen.queries.list_agents():
            self._console.print(f"{'*' if agent.name == self.agent else ' '} {agent.name}  {agent.description}")

    async def _choose_model(self, name: str) -> None:
        if name:
            self._denizen.runtime.current.models.get(name)
            self._model = name
            self._console.print(f"Answers come from {self.describe_model()} now.")
            return
        for model in self._denizen.queries.list_models():
            self._console.print(f"  {model.name}  {', '.join(model.aliases)}")

    async def _tools(self, _: str) -> None:
        for tool in await self._denizen.queries.list_tools(self.agent):
            summary = tool.spec.description.splitlines()[0]
            line = f"  {tool.spec.name}  (tier {int(tool.tier)})  {summary}"
            self._console.print(printable(line), markup=False)

    async def _observer(self, way: str) -> None:
        from denizen.engine.audit.audit_log import AuditLog
        from denizen.engine.commands.admin import run_observer_command

        policy = self._denizen.runtime.current.policy.observer
        services, way = self._denizen.services, way or "status"
        said = await run_observer_command(way, services.observer, policy)
        if way != "status":
            await AuditLog(services.store, services.clock).switch(self._denizen.operator, "observer", way)
        self._console.print(said, markup=False)

    async def _context(self, _: str) -> None:
        for share in (await self._denizen.queries.load_context(self._place, self.agent, self._model)).shares:
            self._console.print(f"  {share.name:<14}{share.tokens:>7} tokens")

    async def _help(self, _: str) -> None:
        self._console.print(HELP, markup=False)

    async def _say(self, text: str) -> None:
        request = TurnRequest(
            agent=AgentName(self.agent),
            place=self._place,
            sender=Sender(
                Author(self._denizen.operator.id, self._denizen.operator.name),
                self._denizen.operator,
                AskerReach.WATCHER if can_prompt() else AskerReach.NOBODY,
            ),
            parts=(TextPart(text),),
            platform_id=fresh("chat"),
            session=SessionChoice(is_new=self._fresh),
            options=RequestOptions(model=self._model),
        )
        self._fresh = False
        await stoppable(lambda: self._show(request), lambda: self._denizen.turns.cancel_message(request))

    async def _show(self, request: TurnRequest) -> None:
        view = TurnView(self._console)
        turns = self._denizen.turns
        async with (
            prompt_for_approvals(turns.approvals, request.sender.principal) as people,
            aclosing(turns.stream(request)) as events,
        ):
            async for event in events:
                view.show(event)
                people.take(event)


class TurnView:
    """A turn on the screen: text as it comes, tool calls as dim lines, the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._line_open = False
        self._reasons = False
        """Whether the open line is reasoning."""
        self._said = ""

    def show(self, event: TurnEvent) -> None:
        match event:
            case TextAdded() if event.text:
                if self._reasons:
                    self._end_line()
                self._console.print(printable(event.text), end="", markup=False, soft_wrap=True)
                self._line_open = not event.text.endswith("\n")
                self._said += event.text
            case TextAdded():
                self._end_line()
                self._said = ""
            case ReasoningAdded():
                self._console.print(printable(event.text), end="", style="dim", markup=False, soft_wrap=True)
                self._line_open = self._reasons = True
            case ToolStarted():
                self._aside(f"{event.tool} {json.dumps(event.args, ensure_ascii=False)}", "cyan dim")
            case ToolFinished():
                summary = " ".join(event.text.split())[:160]
                self._aside(f"  {summary}  ({event.duration_ms} ms)", "red" if event.is_error else "dim")
            case Notice():
                self._aside(event.text, "dim italic")
            case TurnFinished():
                self._end_line()
                self._end(event)
            case _:
                pass

    def _end(self, event: TurnFinished) -> None:
        if event.reply and self._said.strip() and self._said.strip() != event.reply:
            self._aside(IN_THE_END, "dim")
            self._console.print(printable(event.reply), markup=False, soft_wrap=True)
        for image in event.images:
            self._aside(describe_picture(image), "dim")
        if event.status is TurnStatus.CANCELLED:
            self._aside("stopped", "dim")
        elif event.failure:
            self._aside(event.failure.message, "red")
            if event.failure.fix:
                self._aside(f"fix: {event.failure.fix}", "red")

    def _aside(self, text: str, style: str) -> None:
        self._end_line()
        self._console.print(printable(text), style=style, markup=False)

    def _end_line(self) -> None:
        if self._line_open:
            self._console.print()
        self._line_open = self._reasons = False
