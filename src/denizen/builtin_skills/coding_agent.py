"""Gives work to an external coding agent: a program such as Claude Code, in a folder of the conversation or in one that
the owner names; off unless switched on.

The program is not held in by Denizen: it does whatever its own options let it do, with the rights of the one who runs
Denizen. So each call is dangerous, and people see the prompt and the folder. Its environment has no secrets but those
of `tools.coding_agent.env`.

A session belongs to the conversation and the folder that it was begun in, and no other conversation continues it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from denizen.builtin_skills.attempts import begin_once
from denizen.skill import (
    Effect,
    NotAllowed,
    Param,
    ProgramResult,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    quote_untrusted,
    run_in_thread,
    truncate,
)

TIMEOUT_S = 300.0
GRACE_S = 10.0
"""The gate waits this much longer than the program is given, whose end says more."""
MAX_RESULT_CHARS = 8000
MAX_PROMPT_CHARS = 20_000
MAX_SESSIONS = 20
"""How many sessions of a conversation can be continued."""
MIN_SECRET_CHARS = 6
"""The least length of a value of `env` that is left out of what is told; shorter ones are ordinary words."""
NEW = "new"
PLACE = "{{session}}"

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_ANSWERS = ("result", "response")


@dataclass(frozen=True, slots=True)
class CodingAgentSettings:
    """`command` is the program with its arguments, behind which the prompt is put; `resume` are the arguments that
    continue a session, put in front of the prompt with the session's id for `{{session}}`. `env` is what it sees beside
    PATH, HOME and LANG, secrets as ${NAME}. `folders` are folders that it may be given, by the names that agents use;
    without them it works in folders of its own.
    """

    command: tuple[str, ...] = ("claude", "-p", "--output-format", "json")
    resume: tuple[str, ...] = ("--resume", PLACE)
    env: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    folders: dict[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if not self.command or not self.command[0].strip():
            raise ValueError("there is no program\nfix: Write it first, such as command: [claude, -p].")
        for name, folder in self.folders.items():
            if not _PLAIN_NAME.fullmatch(name) or not Path(folder).is_absolute():
                raise ValueError("a folder needs a plain name and an absolute path\nfix: Write {site: /srv/site}.")

    def build_argv(self, prompt: str, session: str) -> list[str]:
        """The prompt is one argument, and none that begins like an option."""
        resume = [part.replace(PLACE, session) for part in self.resume] if session else []
        return [*self.command, *resume, f" {prompt}" if prompt.startswith("-") else prompt]


skill = Skill("coding_agent", description="Gives work to a coding agent.", settings=CodingAgentSettings)


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The answer of the program. `session` is empty where it told none, `cost_usd` 0 where it told none."""

    text: str
    session: str = ""
    cost_usd: float = 0.0
    is_error: bool = False


@skill.tool(
    tier=Tier.DANGEROUS,
    timeout_s=TIMEOUT_S + GRACE_S,
    reads={Taint.TOOL},
    effects={Effect.SEND},
    destructive=True,  # people are asked about each call, whatever a model thinks of it
    listed_only=True,
)
async def coding_agent(
    context: ToolContext,
    prompt: Annotated[str, Param("all that it has to know", min_length=1, max_length=MAX_PROMPT_CHARS)],
    folder: Annotated[str, Param("name of the folder to work in", max_length=64)] = "main",
    session: Annotated[str, Param("id; empty: the last one of this folder; new: none", max_length=128)] = "",
) -> str:
    """Lets a coding agent work in a folder, and tells what it says. It remembers what came before in its session."""
    settings = context.settings(CodingAgentSettings)
    if context.run_program is None:
        raise NotAllowed("programs cannot be run from here")
    if "\0" in prompt:
        raise ToolError("The prompt must be plain text.", is_own=True)
    place = _find_folder(context, settings, folder.strip())
    book = _SessionBook(context.folder / "sessions" / f"{context.conversation}.json")
    resumed = await run_in_thread(partial(book.pick, session.strip(), folder.strip()))
    argv = settings.build_argv(prompt, resumed)
    await begin_once(context, "Look into the folder before you give the work again.")
    ran = await context.run_program(argv, cwd=place, timeout_s=TIMEOUT_S, env=settings.env)
    answer = read_answer(ran.text)
    if answer.session:
        await run_in_thread(partial(book.add, answer.session, folder.strip()))
    return _tell(settings, ran, answer)


def _find_folder(context: ToolContext, settings: CodingAgentSettings, name: str) -> Path:
    """Returns a folder of the owner's, or one of this conversation, which is made. Raises ToolError."""
    if name in settings.folders:
        place = Path(settings.folders[name])
        if not place.is_dir():
            raise ToolError(f"The folder {name} is not there: the owner set tools.coding_agent.folders.", is_own=True)
        return place
    if not _PLAIN_NAME.fullmatch(name):
        known = ", ".join(sorted(settings.folders)) or "none yet"
        raise ToolError(f"Give a plain name of a folder, such as main. The owner's folders: {known}.", is_own=True)
    place = context.folder / "work" / context.conversation / name
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


class _SessionBook:
    """The sessions of one conversation and their folders, the last one used at the end, in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pick(self, wanted: str, folder: str) -> str:
        """Returns the session to continue; empty for none. Raises ToolError for one that is not of this folder."""
        known = [session for session, place in self._load().items() if place == folder]
        if wanted == NEW:
            return ""
        if wanted and wanted not in known:
            shown = ", ".join(known) or "none"
            raise ToolError(f"That is no session of the folder {folder} here. There are: {shown}.", is_own=True)
        return wanted or (known[-1] if known else "")

    def add(self, session: str, folder: str) -> None:
        sessions = self._load()
        sessions.pop(session, None)
        kept = [*sessions.items(), (session, folder)][-MAX_SESSIONS:]
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(dict(kept)), encoding="utf-8")
        new.replace(self._path)

    def _load(self) -> dict[str, str]:
        try:
            found: Any = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (ValueError, OSError) as error:
            fix = f"The owner may remove {self._path.name}."
            raise ToolError(f"The sessions of this conversation cannot be read. {fix}", is_own=True) from error
        rows = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        return {key: str(value) for key, value in rows.items()}


def read_answer(printed: str) -> AgentAnswer:
    """Returns what the program said: the last JSON object on a line of its own, or that the whole output is, which has
    an answer or a session; any other output as it is.
    """
    text = printed.strip()
    for candidate in (text, *reversed(text.splitlines())):
        found = _parse(candidate)
        if found is None:
            continue
        said = next((found[key] for key in _ANSWERS if isinstance(found.get(key), str)), "")
        session, cost = found.get("session_id"), found.get("total_cost_usd")
        return AgentAnswer(
            said or str(found.get("subtype") or "It said nothing."),
            session if isinstance(session, str) and _SESSION.fullmatch(session) else "",
            float(cost) if isinstance(cost, int | float) else 0.0,
            found.get("is_error") is True,
        )
    return AgentAnswer(text or "It printed nothing.")


def _parse(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    row = cast("dict[str, Any]", found)
    return row if isinstance(found, dict) and any(key in row for key in (*_ANSWERS, "session_id")) else None


def _tell(settings: CodingAgentSettings, ran: ProgramResult, answer: AgentAnswer) -> str:
    """Returns the answer, without the secrets that the program was given, and how it ended. Raises ToolError where it
    did not end well.
    """
    text = answer.text
    for value in settings.env.values():
        text = text.replace(value, "***") if len(value) >= MIN_SECRET_CHARS else text
    quoted = quote_untrusted(truncate(text, MAX_RESULT_CHARS), source=Path(settings.command[0]).name)
    notes = [f"session {answer.session}"] if answer.session else []
    if answer.cost_usd:
        notes.append(f"cost {answer.cost_usd:.2f} USD")
    if len(text) > MAX_RESULT_CHARS:
        notes.append(f"cut: it said {len(text):,} characters; ask it to be brief, or to write a file")
    told = f"{quoted}\n[{'; '.join(notes)}]" if notes else quoted
    if ran.is_cut:
        raise ToolError(f"{told}\n[stopped: it printed more than 1 MB]")
    if ran.exit_code is None:
        raise ToolError(
            f"{told}\n[stopped: it was not done within {TIMEOUT_S:g} s; what it has done stays in the folder]"
        )
    if ran.exit_code or answer.is_error:
        raise ToolError(f"{told}\n[it failed, exit code {ran.exit_code}]")
    return told
