"""The text of commands: reading a command that was typed as a message, and formatting replies. Pure.

A typed command names its options: `/model set cheap user: @Ana`. Text before the first named option goes to the
required options in order, where the last one takes the rest; without required options it goes to the first option. A
command with one option takes the whole text for it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from denizen.domain.errors import InvalidInput
from denizen.ports.channel import CommandCall, CommandOption, CommandReply, CommandSpec

_COMMAND = re.compile(r"\s*/([a-z0-9_-]{1,32})(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)


class ParsedCommand(NamedTuple):
    """A command as it was typed. `group` is the subcommand as it was written, known or not; empty for none."""

    name: str
    group: str
    options: Mapping[str, str]


def parse_text(text: str, specs: Sequence[CommandSpec]) -> ParsedCommand | None:
    """Returns the command of a message; None for a message that gives none, such as one that begins with a path
    (`/etc/hosts`). An unknown command has no options.
    """
    match = _COMMAND.fullmatch(text.rstrip())
    if match is None:
        return None
    name, rest = match.group(1).lower(), (match.group(2) or "").strip()
    spec = next((spec for spec in specs if spec.name == name), None)
    if spec is None:
        return ParsedCommand(name, "", {})
    if not spec.groups:
        return ParsedCommand(name, "", split_options(rest, spec.options))
    word, _, rest = rest.partition(" ")
    group = next((group for group in spec.groups if group.name == word.lower()), None)
    options = split_options(rest.strip(), group.options) if group else {}
    return ParsedCommand(name, word.lower(), options)


def split_options(text: str, options: Sequence[CommandOption]) -> dict[str, str]:
    """Returns the values by option name."""
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
    return found | _fill_in_order(before, [option for option in options if option.name not in found])


def _fill_in_order(text: str, options: Sequence[CommandOption]) -> dict[str, str]:
    if not text or not options:
        return {}
    unnamed = [option for option in options if option.required] or options[:1]
    words = text.split(maxsplit=len(unnamed) - 1)
    return {option.name: word for option, word in zip(unnamed, words, strict=False)}


def read_options(given: CommandCall | ParsedCommand, spec: CommandSpec) -> dict[str, str]:
    """Returns the values of the options: stripped, choices as they are offered, blank ones left out.

    Raises InvalidInput that shows how the command is written.
    """
    group = next((group for group in spec.groups if group.name == given.group), None)
    if spec.groups and group is None:
        raise _unknown_group(given.group, spec)
    written = format_usage(spec, group)
    options = {option.name: option for option in (group or spec).options}
    for name in given.options:
        if name not in options:
            raise InvalidInput(f"There is no option `{name}`.", code="command_usage", fix=f"Write `{written}`.")
    values = {
        name: _read_choice(options[name], value.strip()) for name, value in given.options.items() if value.strip()
    }
    for option in options.values():
        if option.required and option.name not in values:
            about, fix = option.description, f"Write `{written}`."
            raise InvalidInput(f"`{option.name}` is missing.", code="command_usage", why=about, fix=fix)
    return values


def _read_choice(option: CommandOption, value: str) -> str:
    if not option.choices:
        return value
    choice = next((choice for choice in option.choices if choice.casefold() == value.casefold()), None)
    if choice is None:
        ways = ", ".join(option.choices)
        raise InvalidInput(f"`{option.name}` cannot be '{value}'.", code="command_usage", fix=f"Write one of: {ways}.")
    return choice


def _unknown_group(word: str, spec: CommandSpec) -> InvalidInput:
    near = closest_match(word, [group.name for group in spec.groups])
    ways = [format_usage(spec, group) for group in spec.groups if not near or group.name == near]
    said = f"/{spec.name} has no '{word}'." if word else f"/{spec.name} needs one more word."
    written = " or ".join(f"`{way}`" for way in ways)
    return InvalidInput(said, code="command_usage", fix=f"Write {written}.")


MAX_SUGGESTIONS = 25
"""How many suggestions platforms show."""

_FENCE = "```"
_BROKEN_FENCE = "``\u200b`"
"""It looks like a fence, but a zero-width space keeps it from closing the block."""


def private_reply(*lines: str) -> CommandReply:
    """Returns a reply that only its user sees, where the platform can do that."""
    return CommandReply("\n".join(lines))


def code_block(text: str, *, limit: int) -> str:
    """Returns the text in a code block that it cannot close itself, of at most `limit` characters with the fences."""
    body = text.replace(_FENCE, _BROKEN_FENCE).strip("\n")
    room = limit - 2 * len(_FENCE) - 2  # the fences and their two line breaks
    if len(body) > room:
        note = f"\n… cut: {len(text)} characters in all"
        body = body[: max(room - len(note), 0)] + note
    return f"{_FENCE}\n{body}\n{_FENCE}"


def format_rows(rows: Sequence[Sequence[str]]) -> str:
    """Returns rows as aligned columns: the first column to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) if at == 0 else cell.rjust(width) for at, (cell, width) in enumerate(cells))
        for cells in ([*zip(row, widths, strict=True)] for row in rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def count_noun(number: int, noun: str, plural: str = "") -> str:
    """Returns a number with its noun: `1 post`, `2 posts`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def format_percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)} %" if whole else "-"


def join_names(names: Iterable[str], *, none: str = "none") -> str:
    return ", ".join(f"`{name}`" for name in names) or none


def closest_match(word: str, known: Iterable[str]) -> str:
    """Returns the known word that was probably meant; empty when none is similar."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)), "")


def rank_suggestions(typed: str, names: Iterable[str]) -> list[str]:
    """Returns the names that begin with what was typed, then those that contain it; as many as platforms show."""
    wanted = typed.strip().casefold()
    found = [name for name in names if wanted in name.casefold()]
    return sorted(found, key=lambda name: not name.casefold().startswith(wanted))[:MAX_SUGGESTIONS]


def format_usage(spec: CommandSpec, group: CommandSpec | None = None) -> str:
    """Returns how a command is written as text: `/allow add [user] [role]`."""
    options = (group or spec).options
    name = f"/{spec.name} {group.name}" if group else f"/{spec.name}"
    words = [f"<{option.name}>" if option.required else f"[{option.name}]" for option in options]
    return " ".join([name, *words])
