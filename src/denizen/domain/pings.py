"""Mentions: names that an agent writes become pings, pings become names for an agent to read, and its own are removed.

Three pure functions over Discord's forms `<@id>`, `<@&id>`, `<#id>`. Who may be pinged at all is said by the allowed
mentions of a message, which an adapter sets from `PingedText`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from denizen.domain.markup import Fence, Span, Spans, list_code_spans, list_fences, list_tokens, replace_spans
from denizen.domain.names import quote_name
from denizen.domain.record import record

_NOBODY: Mapping[str, str] = MappingProxyType({})
_EVERYBODY = frozenset({"everyone", "here"})
_EVERYBODY_AT = re.compile(r"@(?=everyone|here)", re.IGNORECASE)
_DEFUSED = "@\u200b"

# Behind a letter, an @, a slash or a backslash an @ belongs to an address, a path or is escaped; so it does behind a
# dot or the like that follows a letter (`a.b.@c`).
_AT = re.compile(r"(?<![^\W_])(?<![@/\\])(?<![^\W_][.+%_-])@")
_NAME_END = re.compile(r"(?!\w|[-./@]\w)|(?=_++(?!\w))")
_MENTION = re.compile(r"<@[!&]?(\w+)>")
_MENTION_AND_COLON = re.compile(r"(?:(?<=\n)|\A)([ \t]*+<@[!&]?\w+>)[,:;](?=\s|\Z)")
_FORM = re.compile(
    r"<@!?(?P<user>\d+)>|<@&(?P<role>\d+)>|<#(?P<channel>\d+)>|<a?:(?P<emoji>\w+):\d+>"
    r"|<t:(?P<time>-?\d{1,17})(?::[a-zA-Z])?>|</(?P<command>[^<>\n:]{1,100}+):\d+>"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@record
class PingedText:
    """A text with pings, and exactly the ids that it pings because a name in it was recognised."""

    text: str
    user_ids: frozenset[str] = frozenset()
    role_ids: frozenset[str] = frozenset()


@record
class _Target:
    id: str
    is_role: bool


def link_pings(text: str, names: Mapping[str, str], *, roles: Mapping[str, str] = _NOBODY) -> PingedText:
    """`@Name` becomes `<@id>`, for a role `<@&id>`. `names` and `roles` lead from every name in use to its id.

    Case does not matter, and of several names that fit the longest wins; one that belongs to two ids is left alone. A
    name may stand in quotes, as `name_mentions` writes those of several words. Code, links, URLs and e-mail addresses
    are not touched. `@everyone` and `@here` are never names: outside of code they get a zero-width space, and in a URL
    their @ is encoded, so that they reach nobody.
    """
    book = _Book(names, roles)
    fences = list_fences(text)
    code = _list_code(text, fences)
    skipped = Spans([*code, *list_tokens(text, code)])
    found = dict(book.find_all(text, skipped))
    edits = [(span, f"<@&{target.id}>" if target.is_role else f"<@{target.id}>") for span, target in found.items()]
    # What looks like an open block may be shown as plain text, so nobody is called from there either.
    is_code = Spans(_list_code(text, [fence for fence in fences if fence.is_closed]))
    taken = Spans(found)
    for match in _EVERYBODY_AT.finditer(text):
        at = match.start()
        if not is_code.find_around(at) and not taken.find_around(at, or_at_start=True):
            edits.append((match.span(), "%40" if _is_in_url(text, skipped.find_around(at)) else _DEFUSED))
    return PingedText(
        replace_spans(text, sorted(edits)),
        frozenset(target.id for target in found.values() if not target.is_role),
        frozenset(target.id for target in found.values() if target.is_role),
    )


def name_mentions(
    text: str, users: Mapping[str, str], roles: Mapping[str, str] = _NOBODY, channels: Mapping[str, str] = _NOBODY
) -> str:
    """The platform's forms as people see them, for an agent to read; the mappings lead from ids to names.

    Users and roles become `@Name`, channels `#name`, custom emoji `:name:`, commands `/name`, and timestamps a time in
    UTC. A name of several words is put in quotes, and one that reads like a sentence stays a form with an id
    (`domain/names`). Who is not known stays readable as `@unknown-user`, `@unknown-role` and `#unknown-channel`.
    """

    def show(form: re.Match[str], sigil: str, chosen: str) -> str:
        token = quote_name(chosen)
        return f"{sigil}{token}" if token else form.group()

    def name(form: re.Match[str]) -> str:
        value = form[form.lastgroup or 0]
        match form.lastgroup:
            case "user":
                return show(form, "@", users.get(value, "unknown-user"))
            case "role":
                return show(form, "@", roles.get(value, "unknown-role"))
            case "channel":
                return show(form, "#", channels.get(value, "unknown-channel"))
            case "emoji":
                return f":{value}:"
            case "command":
                return f"/{value}"
            case _:
                return _format_time(int(value)) or form.group()

    return _FORM.sub(name, text)


def remove_mention(text: str, ids: Collection[str]) -> str:
    """The text without the mentions of these users and roles, in every form, at every place, however often.

    The space around them is tidied, and so is a comma or colon behind one that begins a line (`@Denizen, hello`).
    """
    edits = [(match.span(), "") for match in _MENTION.finditer(text) if match[1] in ids]
    if not edits:
        return text
    greeted = [
        ((match.end(1), match.end()), "")
        for match in _MENTION_AND_COLON.finditer(text)
        if (mention := _MENTION.search(match[1])) and mention[1] in ids
    ]
    return replace_spans(text, sorted([*edits, *greeted]), tight=",.;:?").strip()


class _Book:
    """Names, folded, and whom they mean; None for a name of two."""

    def __init__(self, names: Mapping[str, str], roles: Mapping[str, str]) -> None:
        self._targets: dict[str, _Target | None] = {}
        for book, is_role in ((names, False), (roles, True)):
            for name, target_id in book.items():
                self._add(_fold(name), _Target(target_id, is_role))
        self._longest = max(map(len, self._targets), default=0)
        self._starts = {_first_letter(name) for name in self._targets}

    def find_all(self, text: str, skipped: Spans) -> Iterator[tuple[Span, _Target]]:
        """Where a name that means one is called, in order."""
        place = 0
        while at := _AT.search(text, place):
            place = at.end()
            if skipped.find_around(at.start()):
                continue
            opening, closing = "", ""
            if text[at.start() - 1 : at.start()] == "<":
                opening, closing = "<", ">"
            elif text.startswith('"', place):  # as agents read names of several words
                place, closing = place + 1, '"'
            end, target = self._find_longest(text, place)
            place = max(place, end)
            if target is not None and text.startswith(closing, end):
                yield (at.start() - len(opening), end + len(closing)), target

    def _add(self, name: str, target: _Target) -> None:
        if name and name not in _EVERYBODY:
            self._targets[name] = target if self._targets.get(name, target) == target else None

    def _find_longest(self, text: str, start: int) -> tuple[int, _Target | None]:
        """The end of the longest name that begins here, and whom it means; the start when there is none."""
        # A letter and its accent may be two characters in one of both texts, so what is as long as a name may be twice
        # as long here.
        window = text[start : start + 2 * self._longest].split("\n", 1)[0]
        if not window or _first_letter(_fold(window[:1])) not in self._starts:
            return start, None
        for end in range(start + len(window), start, -1):
            if _NAME_END.match(text, end):
                name = _fold(text[start:end])
                if name in self._targets and not text[end - 1].isspace():
                    return end, self._targets[name]
        return start, None


def _list_code(text: str, fences: list[Fence]) -> list[Span]:
    return sorted([*((fence.start, fence.end) for fence in fences), *list_code_spans(text, fences)])


def _is_in_url(text: str, token: Span | None) -> bool:
    return token is not None and text.find("://", *token) >= 0


def _fold(name: str) -> str:
    """The form in which names are compared: no difference of case, of width, of composition, or of space."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def _first_letter(folded: str) -> str:
    """Without its accent, which may be a character of its own."""
    return unicodedata.normalize("NFKD", folded)[:1]


def _format_time(seconds: int) -> str:
    """A time in UTC, to the minute; empty when there is no such year."""
    try:
        return f"{_EPOCH + timedelta(seconds=seconds):%Y-%m-%d %H:%M} UTC"
    except OverflowError:
        return ""
