"""`denizen chat`: an agent in the terminal, with streaming, visible tool calls, history and a few commands."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click

from denizen.app.model_choice import ModelChoice
from denizen.app.terminal_messages import TerminalMessage
from denizen.cli.approval_prompt import prompt_for_approvals
from denizen.cli.exit_codes import DONE
from denizen.cli.options import model_options
from denizen.cli.terminal import IN_THE_END, SKIPPED, can_prompt, describe_picture, printable, stoppable
from denizen.cli.terminal_client import find_server
from denizen.cli.waiting_line import WaitingLine, open_waiting_line
from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.handover import BACK, DEFAULT_MESSAGES, DEFAULT_MINUTES
from denizen.domain.ids import fresh
from denizen.web.http.problems import read_problem
from denizen_sdk.turns import (
    ChatEvent,
    NoticeEvent,
    ReasoningAddedEvent,
    TextAddedEvent,
    TextRetractedEvent,
    ToolFinishedEvent,
    ToolStartedEvent,
    TurnFailedEvent,
    TurnFinishedEvent,
)

if TYPE_CHECKING:
    from rich.console import Console

    from denizen.app.terminal import TerminalService
    from denizen.cli.server_terminal import ServerTerminal

HELP = """\
/new             start a fresh session; the old one is kept
/agent [NAME]    show the agents, or talk to another one
/handover NAME [MINUTES] [MESSAGES]
                 let another agent answer for a while; /handover back or !exit ends it
/model [NAME]    show the models, or answer with another one
/tools           what the agent may use
/migrate WAY     status, to-postgres or cancel: the database in use, and moving it to Postgres
/schedules WAY   list, add, on, off, run, remove or history: what agents do at set times
/observer WAY    enable, disable, reset or status of the model that looks at risky calls
/context         how the next prompt's tokens divide
/help            this list
/quit            leave (also Ctrl-D, or Ctrl-C twice)
Ctrl-C stops an answer that is under way; at a question about a call it denies the call as well."""

EXIT = "!exit"
MOVE_LOOK_S = 0.3
"""How often a move of the store is looked at."""

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
    """Talk to an agent. The session is kept; /help lists the commands. A `denizen run` of this home answers, if there
    is one and no model is named.
    """
    return anyio.run(_chat, home, agent, session, choice, backend_options={"use_uvloop": True})


async def _chat(home: Path, agent: str, session: str, choice: ModelChoice) -> int:
    from rich.console import Console

    console = Console(highlight=False)
    with open_waiting_line() as waiting:
        async with _open_terminal(home, choice, waiting) as terminal:
            chat = TerminalChat(terminal, console, session=session, waiting=waiting)
            console.print(f"{await chat.choose_agent(agent)}. /help lists the commands.")
            read = _reader(home, console)
            while (line := await read()) is not None:
                if not line.strip():
                    continue
                if not await chat.handle(line.strip()):
                    break
    return DONE


@asynccontextmanager
async def _open_terminal(
    home: Path, choice: ModelChoice, waiting: WaitingLine
) -> AsyncGenerator[TerminalService | ServerTerminal]:
    """The server that runs on the home folder; where there is none, the folder is opened for the chat."""
    server = find_server(home) if choice == ModelChoice() else None
    if server is not None:
        from denizen.cli.server_terminal import ServerTerminal

        yield ServerTerminal(server)
        return

    from denizen.app.build import OpenOptions, open_denizen
    from denizen.app.configuration import HomeConfiguration
    from denizen.app.reload import Reloader
    from denizen.app.schedule_configuration import HomeSchedules
    from denizen.app.terminal import TerminalService
    from denizen.cli.log import leave_to_command
    from denizen.cli.terminal import show_weights_progress

    leave_to_command("denizen.turn")

    opening = OpenOptions(choice, report=waiting.give_way(show_weights_progress), asks=True)
    async with open_denizen(home, opening) as denizen:
        terminal = TerminalService(denizen)
        terminal.check()
        files = HomeConfiguration(denizen, Reloader(denizen))
        denizen.own_schedules.open_configuration(HomeSchedules(denizen.schedule_catalog, files))
        yield terminal
        await terminal.finish()


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

    is_leaving = False

    async def read_terminal() -> str | None:
        nonlocal is_leaving
        try:
            line = await prompt.prompt_async("> ")
        except EOFError:
            return None
        except KeyboardInterrupt:
            if is_leaving:
                return None
            is_leaving = True
            console.print("Ctrl-C once more leaves.")
            return ""
        is_leaving = False
        return line

    return read_terminal


def private_file(file: Path) -> Path:
    """The file, made when it is not there; what somebody typed is for nobody else to read."""
    file.touch(mode=0o600)
    file.chmod(0o600)
    return file


class TerminalChat:
    """One conversation in the terminal and its few commands."""

    def __init__(
        self, terminal: TerminalService | ServerTerminal, console: Console, *, session: str, waiting: WaitingLine
    ) -> None:
        self._terminal = terminal
        self._waiting = waiting
        self._console = console
        self._session = session
        self._model = ""
        self._fresh = False
        self.agent = ""
        self._commands = {
            "new": self._new,
            "agent": self._agent,
            "handover": self._hand_over,
            "model": self._choose_model,
            "tools": self._tools,
            "migrate": self._migrate,
            "schedules": self._schedules,
            "observer": self._observer,
            "context": self._context,
            "help": self._help,
        }

    async def choose_agent(self, name: str) -> str:
        """Talks to the agent from now on, to the default one without a name; returns its name and model in words.
        Raises NotFound.
        """
        agent = await self._terminal.get_agent(name)
        self.agent, self._model = agent.name, ""
        return f"[bold]{agent.name}[/] on {await self._describe_model(agent.model)}"

    async def _describe_model(self, name: str) -> str:
        """The model of that name or alias, with a word about the built-in one."""
        models = await self._terminal.list_models()
        info = next((model for model in models if name == model.name or name in model.aliases), None)
        if info is None:
            return name
        note = " (built-in small model; `denizen setup` connects a better one)" if info.is_embedded else ""
        return f"{info.name}{note}"

    async def handle(self, line: str) -> bool:
        """A command or a message; False when the user wants to leave. Errors are explained and the chat goes on."""
        try:
            if line.casefold() == EXIT and (said := await self._terminal.end_handover(self._session)):
                self._console.print(said, markup=False, soft_wrap=True)
                return True
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
            self._console.print(f"Talking to {await self.choose_agent(name)}.")
            await self._terminal.end_handover(self._session)
            return
        for agent in await self._terminal.list_agents():
            self._console.print(f"{'*' if agent.name == self.agent else ' '} {agent.name}  {agent.description}")

    async def _hand_over(self, typed: str) -> None:
        name, *limits = typed.split() or [""]
        if name.casefold() == BACK:
            said = await self._terminal.end_handover(self._session) or "This session was not handed over."
            self._console.print(said, markup=False, soft_wrap=True)
            return
        if not name or len(limits) > 2 or not all(limit.isascii() and limit.isdecimal() for limit in limits):
            raise InvalidInput("This hands nothing over.", code="command_usage", fix="Write /handover NAME 15 20.")
        minutes, messages = (*map(int, limits), *(DEFAULT_MINUTES, DEFAULT_MESSAGES)[len(limits) :])
        said = await self._terminal.hand_over(self._session, self.agent, name, minutes, messages)
        self._console.print(said, markup=False, soft_wrap=True)

    async def _choose_model(self, name: str) -> None:
        models = await self._terminal.list_models(name)
        if name:
            self._model = name
            self._console.print(f"Answers come from {await self._describe_model(name)} now.")
            return
        for model in models:
            self._console.print(f"  {model.name}  {', '.join(model.aliases)}")

    async def _tools(self, _: str) -> None:
        for tool in await self._terminal.list_tools(self.agent):
            line = f"  {tool.name}  (tier {tool.tier})  {tool.description.splitlines()[0]}"
            self._console.print(printable(line), markup=False)

    async def _migrate(self, typed: str) -> None:
        from rich.markup import escape

        action, _, confirmed = typed.partition(" ")
        if action == "to-postgres" and confirmed.replace(" ", "") not in {"yes", "confirm:yes"}:
            self._console.print(
                "This moves everything to the database of store.move_to; then Denizen restarts itself. "
                "Write /migrate to-postgres yes.",
                markup=False,
            )
            return
        report = await self._terminal.run_migrate(action or "status")
        if action == "to-postgres" and report.is_running:
            with self._console.status("") as line:
                while report.is_running:
                    line.update(escape(report.text.partition("\nUntil")[0].replace("\n", "  ")))
                    await anyio.sleep(MOVE_LOOK_S)
                    report = await self._terminal.report_move()
        self._console.print(printable(report.text), markup=False, soft_wrap=True)

    async def _schedules(self, typed: str) -> None:
        said = await self._terminal.run_schedules(typed, self.agent)
        self._console.print(printable(said), markup=False, soft_wrap=True)

    async def _observer(self, action: str) -> None:
        self._console.print(await self._terminal.run_observer(action or "status"), markup=False)

    async def _context(self, _: str) -> None:
        for name, tokens in (await self._terminal.list_context(self.agent, self._session, self._model)).items():
            self._console.print(f"  {name:<14}{tokens:>7} tokens")

    async def _help(self, _: str) -> None:
        self._console.print(HELP, markup=False)

    async def _say(self, text: str) -> None:
        answering = await self._terminal.find_answering(self._session, self.agent)
        if answering.note:
            self._console.print(answering.note, style="dim italic", markup=False, soft_wrap=True)
        is_own = answering.agent == self.agent
        message = TerminalMessage(
            key=fresh("chat"),
            command="chat",
            session=self._session,
            text=text,
            agent=answering.agent,
            model=self._model if is_own else "",
            is_new=self._fresh,
            can_prompt=can_prompt(),
        )
        self._fresh = False
        if not is_own:
            self._console.print(f"{answering.agent}:", style="bold", markup=False)
        await stoppable(lambda: self._show(message), lambda: self._terminal.cancel(message))

    async def _show(self, message: TerminalMessage) -> None:
        view = TurnView(self._console)
        with self._waiting.watch():
            async with (
                prompt_for_approvals(self._terminal.decide) as people,
                aclosing(self._terminal.stream(message)) as events,
            ):
                async for event in events:
                    self._waiting.take(event)
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

    def show(self, event: ChatEvent) -> None:
        match event:
            case TextAddedEvent():
                if self._reasons:
                    self._end_line()
                self._console.print(printable(event.text), end="", markup=False, soft_wrap=True)
                self._line_open = not event.text.endswith("\n")
                self._said += event.text
            case TextRetractedEvent():
                self._end_line()
                self._said = ""
            case ReasoningAddedEvent():
                self._console.print(printable(event.text), end="", style="dim", markup=False, soft_wrap=True)
                self._line_open = self._reasons = True
            case ToolStartedEvent():
                self._aside(f"{event.tool} {json.dumps(event.args, ensure_ascii=False)}", "cyan dim")
            case ToolFinishedEvent():
                summary = " ".join(event.text.split())[:160]
                self._aside(f"  {summary}  ({event.duration_ms} ms)", "red" if event.is_error else "dim")
            case NoticeEvent():
                self._aside(event.text, "dim italic")
            case TurnFinishedEvent():
                self._end_line()
                self._end(event)
            case TurnFailedEvent():
                error = read_problem(event.error)
                self._aside(error.message, "red")
                if error.fix:
                    self._aside(f"fix: {error.fix}", "red")
            case _:
                pass

    def _end(self, event: TurnFinishedEvent) -> None:
        if event.reply and self._said.strip() and self._said.strip() != event.reply:
            self._aside(IN_THE_END, "dim")
            self._console.print(printable(event.reply), markup=False, soft_wrap=True)
        if event.cards:
            self._console.print(printable(event.cards), markup=False, soft_wrap=True)
        for image in event.images:
            self._aside(describe_picture(image), "dim")
        if event.status == "cancelled":
            self._aside("stopped", "dim")
        if event.skipped:
            self._aside(SKIPPED, "dim")

    def _aside(self, text: str, style: str) -> None:
        self._end_line()
        self._console.print(printable(text), style=style, markup=False)

    def _end_line(self) -> None:
        if self._line_open:
            self._console.print()
        self._line_open = self._reasons = False
