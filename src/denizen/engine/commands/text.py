"""A command that was written as a message: `/model set cheap user: @Ana` (inventory T36). Pure.

Options are named, `name: value`; what comes before the first named one belongs to the required options in order, of
which the last takes the rest, else to the first option. With one option everything belongs to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from denizen.ports.channel import CommandOption, CommandSpec

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
