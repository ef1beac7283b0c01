"""The values that nodes of workflows work on: places in templates, tests, times and durations. Pure.

A scope has, by name, what places can name: `event`, `input`, `run`, in loops `item` and `index`, and the outputs of
earlier nodes. A place whose value is not there is empty. What is filled in has no places itself. A backslash is written
before braces that begin no place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from denizen.domain.authored_text import AuthoredText, TextPiece, author, list_parts, write_post
from denizen.domain.cloud_event import BRACES, PLACE, find_value, list_places
from denizen.domain.comparison import contains, exists, is_equal, is_within, matches
from denizen.domain.errors import InvalidInput
from denizen.domain.json import Json, JsonObject

MAX_TEXT_CHARS = 100_000
"""The limit of a text after its places are filled."""
MAX_FILLED_CHARS = 1_000_000
"""The limit of all texts of a setting together."""
TESTS = ("equals", "not_equals", "one_of", "contains", "matches", "at_least", "at_most", "exists")

_FORM = re.compile(r"<(?:@[!&]?|#)\d{1,20}>")
_PING = re.compile(r"<@!?(\d{1,20})>")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def fill(value: Json, scope: Mapping[str, Json]) -> Json:
    """Returns the value with its places filled, at any depth. A text that is one place becomes the value itself; in all
    others the author's parts stay told apart from what is filled in.

    Raises InvalidInput (`workflow_text_long`) for texts that become too long.
    """
    return _FilledValue(scope).fill(value)


def fill_text(template: str, scope: Mapping[str, Json]) -> AuthoredText:
    """Returns the text of a template, which its author wrote but for what is filled in. Raises as `fill`."""
    return _FilledValue(scope).fill_text(template)


@dataclass(slots=True)
class _FilledValue:
    """A value whose places are being filled, and how many characters its texts may still get by that."""

    scope: Mapping[str, Json]
    left_chars: int = MAX_FILLED_CHARS

    def fill(self, value: Json) -> Json:
        match value:
            case str():
                whole = PLACE.fullmatch(value.strip())
                return _find(whole[1], self.scope) if whole and whole[1] else self.fill_text(value)
            case Mapping():
                return {str(name): self.fill(each) for name, each in value.items()}
            case Sequence():
                return [self.fill(each) for each in value]
            case _:
                return value

    def fill_text(self, template: str) -> AuthoredText:
        parts, left = list[TextPiece](), min(self.left_chars, MAX_TEXT_CHARS)
        before = left
        for at, piece in enumerate(PLACE.split(template)):  # texts and paths in turn; an escape has no path
            if at % 2 == 1 and piece:
                added = list_parts(show_parts(_find(piece, self.scope)))
            else:
                added = [TextPiece(BRACES if piece is None else piece, is_authored=True)]
            left -= sum(len(each.text) for each in added)
            if left < 0:
                raise InvalidInput(
                    f"A text has more than {MAX_TEXT_CHARS} characters when its places are filled, or all of them more "
                    f"than {MAX_FILLED_CHARS}.",
                    code="workflow_text_long",
                    fix="Take a part of what is filled in, with `slice` or `extract`.",
                )
            parts += added
        self.left_chars -= before - left
        return AuthoredText.of(parts)


def fill_post(template: str, scope: Mapping[str, Json]) -> str:
    """Returns the text of a post. Nothing that is foreign in it is markup, so that nobody's name becomes a link or a
    ping; mentions that the platform itself wrote into an event stay. Raises as `fill`.
    """
    return write_post(fill_text(template, scope))


def list_mentioned(template: str, scope: Mapping[str, Json]) -> Sequence[str]:
    """Returns the ids of the people whom a template mentions by a place, whom the post may ping."""
    forms = (show(find_value(scope, path)) for path in list_places(template) if _is_mention(path, scope))
    return [found[1] for found in map(_PING.fullmatch, forms) if found]


def show(value: Json) -> str:
    """Returns a value as plain text: texts as they are, nothing as an empty one, all else as JSON."""
    return str(show_parts(value))


def show_parts(value: Json) -> str:
    """Returns a value as `show`, and keeps which parts of it the author wrote."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _find(path: str, scope: Mapping[str, Json]) -> Json:
    value = find_value(scope, path)
    if isinstance(value, str) and _is_mention(path, scope) and _FORM.fullmatch(value):
        return author(value)
    return value


def _is_mention(path: str, scope: Mapping[str, Json]) -> bool:
    """Whether it is a form that the platform wrote into an event."""
    kind = show(find_value(scope, "event.@type"))
    return kind.startswith("discord.") and path.startswith("event.") and path.endswith(".mention")


def list_texts(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yields all texts in a value, at any depth, with where they stand."""
    match value:
        case str():
            yield path, value
        case Mapping():
            for name, each in value.items():
                yield from list_texts(each, (*path, name))
        case Sequence():
            for index, each in enumerate(value):
                yield from list_texts(each, (*path, index))
        case _:
            pass


def list_all_places(value: Json) -> Iterator[str]:
    """Yields the paths of all places in a value, at any depth."""
    for _, text in list_texts(value):
        yield from list_places(text)


def find_broken_place(text: str) -> str:
    """Returns where a place begins that is not closed or has no path, with a little of what follows; empty without."""
    at = PLACE.sub(lambda place: " " * len(place[0]), text).find("{{")
    return text[at : at + 30].partition("\n")[0] if at >= 0 else ""


def read_duration(value: Json) -> float | None:
    """Returns the seconds of `90`, `10m` or `1.5h`; None for what is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(found[1]) * _UNITS[found[2] or "s"] if found else None


def read_clock(value: str) -> int | None:
    """Returns the minutes since midnight of `09:30`; None for what is no time of the day."""
    found = _CLOCK.fullmatch(value.strip())
    minutes = int(found[1]) * 60 + int(found[2]) if found else 0
    return minutes if found and int(found[2]) < 60 and minutes <= 24 * 60 else None


def read_days(value: str) -> frozenset[int] | None:
    """Returns the days of `mon-fri` or `sat,sun`, Monday being 0; all for an empty text, None for what is none."""
    if not value.strip():
        return frozenset(range(7))
    found: set[int] = set()
    for part in value.lower().split(","):
        first, _, last = part.strip().partition("-")
        if first not in _DAYS or (last or first) not in _DAYS:
            return None
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        found |= {(begin + step) % 7 for step in range((end - begin) % 7 + 1)}
    return frozenset(found)


def list_tests(value: Json) -> Sequence[JsonObject]:
    """Returns the tests of a setting, which is one or a list of them."""
    several = value if isinstance(value, list) else [value]
    return [dict(each) for each in several if isinstance(each, Mapping)]


def check_tests(value: Json, scope: Mapping[str, Json], *, is_any: bool) -> bool:
    """Tells whether all tests hold, or any of them; their places are filled with the scope. Where a place has no value
    only `exists: false` holds.
    """
    results = [_holds(each, scope) for each in list_tests(value)]
    return bool(results) and (any(results) if is_any else all(results))


def misses_value(value: Json, scope: Mapping[str, Json]) -> bool:
    """Whether it is nothing, or a place in it has no value."""
    return value is None or any(find_value(scope, place) is None for place in list_all_places(value))


def _holds(test: JsonObject, scope: Mapping[str, Json]) -> bool:
    value, is_missing = fill(test.get("value"), scope), misses_value(test.get("value"), scope)
    wanted = {name: each for name, each in test.items() if name != "value"}
    return bool(wanted) and all(
        (not is_missing and exists(value)) == each
        if name == "exists"
        else not is_missing and not misses_value(each, scope) and _holds_one(name, value, fill(each, scope))
        for name, each in wanted.items()
    )


def _holds_one(name: str, value: Json, wanted: Json) -> bool:
    match name:
        case "equals":
            return is_equal(value, wanted)
        case "not_equals":
            return not is_equal(value, wanted)
        case "one_of":
            return any(is_equal(value, each) for each in (wanted if isinstance(wanted, list) else [wanted]))
        case "contains":
            return contains(value, wanted)
        case "matches":
            return matches(value, show(wanted))
        case "at_least":
            return is_within(value, at_least=wanted)
        case "at_most":
            return is_within(value, at_most=wanted)
        case _:
            return False
