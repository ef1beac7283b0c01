"""A command that was written as a message: `/model set cheap user: @Ana` (inventory T36). Pure.

Options are named, `name: value`; what comes before the first named one belongs to the required options in order, of
which the last takes the rest, else to the first option. With one option everything belongs to it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from denizen.ports.channel import CommandOption, CommandReply, CommandSpec

_COMMAND = re.compile(r"\s*/([a-z0-9_-]{1,32})(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)

ParsedCommand = tuple[str, str, dict[str, str]]
"""Name, subcommand and options."""


def parse_text(text: str, specs: Sequence[CommandSpec]) -> ParsedCommand | None:
    """None for what is no command: a path such as `/etc/hosts`, or anything else. An unknown command is one with
    options unread. A subcommand is given as it was written, known or not; empty when none was.
    """
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None:
        return None
    name, rest = match.group(1).lower(), (match.group(2) or "").strip()
    spec = next((spec for spec in specs if spec.name == name), None)
    if spec is None:
        return name, "", {}
    if not spec.groups:
        return name, "", split_options(rest, spec.options)
    word, _, rest = rest.partition(" ")
    group = next((group for group in spec.groups if group.name == word.lower()), None)
    return name, word.lower(), split_options(rest.strip(), group.options) if group else {}


def split_options(text: str, options: Sequence[CommandOption]) -> dict[str, str]:
    if not options or not text:
        return {}
    if len(options) == 1:
        only = options[0].name
        return {only: re.sub(rf"\A{re.escape(only)}\s*[:=]\s*", "", text, flags=re.IGNORECASE)}
    names = "|".join(re.escape(option.name) for option in options)
    marks = list(re.finditer(rf"(?:(?<=\s)|\A)({names})\s*[:=]\s*", text, re.IGNORECASE))
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    found = (
        {mark.group(1).lower(): text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
        if marks
        else {}
    )
    before = text[: marks[0].start()].strip() if marks else text
    return found | _by_place(before, [option for option in options if option.name not in found])


def _by_place(text: str, options: Sequence[CommandOption]) -> dict[str, str]:
    if not text or not options:
        return {}
    places = [option for option in options if option.required] or options[:1]
    words = text.split(maxsplit=len(places) - 1)
    return {option.name: word for option, word in zip(places, words, strict=False)}


MAX_SUGGESTIONS = 25
"""What platforms show (inventory T35)."""

_FENCE = "```"
_BROKEN_FENCE = "``\u200b`"
"""Looks like a fence and closes none."""


def private_reply(*lines: str) -> CommandReply:
    """A private reply."""
    return CommandReply("\n".join(lines))


def truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: max(limit - 1, 0)]}…"


def code_block(text: str, *, limit: int) -> str:
    """The text in a block that it cannot close itself, of at most `limit` characters with its fences."""
    body = text.replace(_FENCE, _BROKEN_FENCE).strip("\n")
    room = limit - 2 * len(_FENCE) - 2
    if len(body) > room:
        note = f"\n… cut: {len(text)} characters in all"
        body = body[: max(room - len(note), 0)] + note
    return f"{_FENCE}\n{body}\n{_FENCE}"


def format_rows(rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(cells))
        for cells in ([*zip(row, widths, strict=True)] for row in rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def count_noun(number: int, noun: str, plural: str = "") -> str:
    """`1 post`, `2 posts`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)} %" if whole else "-"


def join_names(names: Iterable[str], *, none: str = "none") -> str:
    return ", ".join(f"`{name}`" for name in names) or none


def closest_match(word: str, known: Iterable[str]) -> str:
    """The known word that was probably meant; empty when none is near."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)), "")


def rank_suggestions(typed: str, names: Iterable[str]) -> list[str]:
    """Those that begin with what was typed, then those that hold it; as many as platforms show."""
    wanted = typed.strip().casefold()
    found = [name for name in names if wanted in name.casefold()]
    return sorted(found, key=lambda name: not name.casefold().startswith(wanted))[:MAX_SUGGESTIONS]


def format_usage(spec: CommandSpec, group: CommandSpec | None = None) -> str:
    """`/allow add [user] [role]`: how a command is written as text."""
    options = (group or spec).options
    name = f"/{spec.name} {group.name}" if group else f"/{spec.name}"
    words = [f"<{option.name}>" if option.required else f"[{option.name}]" for option in options]
    return " ".join([name, *words])
