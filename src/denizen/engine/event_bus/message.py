"""Writes what an event says to an agent, and in a post. Pure.

Values of events are foreign: to an agent they are marked as data, in a post they are shown as plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from denizen.domain.authored_text import escape_markup
from denizen.domain.cloud_event import CloudEvent, fill_template, list_places, show_field
from denizen.skill.context import quote_untrusted

MAX_EVENT_CHARS = 12_000
"""The limit for the whole data of an event that an agent reads."""
MAX_DIGEST_CHARS, MAX_DIGEST_POST_CHARS = 24_000, 6000
"""The limits for what several events say together."""
INLINE_CHARS = 200
MENTION = "mention"
"""The last part of a path whose value is a platform's form for somebody, in events of the platform itself."""
PLATFORM_TYPES = "discord."
"""Begins the types of events in which nobody but the platform writes such forms."""

_FORM = re.compile(r"<(?:@[!&]?|#)\d{1,20}>")
_PING = re.compile(r"<@!?(\d{1,20})>")


def write_digest_prompt(events: Sequence[CloudEvent], template: str, *, more: int = 0) -> str:
    """Returns what an agent is told about several events, the oldest first. Of many the last ones are only counted,
    and so are `more` events behind them.
    """
    return _join("\n\n", [write_prompt(each, template) for each in events], more, MAX_DIGEST_CHARS)


def write_digest_post(events: Sequence[CloudEvent], template: str, *, more: int = 0) -> str:
    """Returns the text of a post about several events, a line for each, as `write_digest_prompt` does."""
    return _join("\n", [write_post(each, template) for each in events], more, MAX_DIGEST_POST_CHARS)


def _join(between: str, texts: Sequence[str], more: int, most_chars: int) -> str:
    shown, room = list[str](), most_chars
    for text in texts:
        room -= len(text) + len(between)
        if room < 0 and shown:
            break
        shown.append(text)
    left = len(texts) - len(shown) + more
    return between.join([*shown, f"and {left} more"] if left else shown)


def write_prompt(event: CloudEvent, template: str) -> str:
    """Returns what an agent is told: the template with its values, or else the event with all of its data. Short values
    stand in the line; those of several lines are quoted.
    """
    if template:
        return fill_template(template, {path: _show_to_agent(event, path) for path in list_places(template)})
    text = json.dumps(event.data, ensure_ascii=False, indent=1)
    if len(text) > MAX_EVENT_CHARS:
        text = f"{text[:MAX_EVENT_CHARS]}\n[... {len(text) - MAX_EVENT_CHARS} more characters]"
    about = f" about {_show_to_agent(event, '@subject')}" if event.subject else ""
    return f"An event of type {event.type} came in{about}.\n{quote_untrusted(text, source=event.source)}"


def write_post(event: CloudEvent, template: str) -> str:
    """Returns the text of a post. Nothing in a value is markup, so that nobody's name becomes a link or a ping."""
    return fill_template(template, {path: _show_in_post(event, path) for path in list_places(template)}).strip()


def list_mentioned(event: CloudEvent, template: str) -> Mapping[str, str]:
    """Returns the people whom the template mentions, whom the post may ping: their form in the text, by id. Channels
    and roles are shown, and not pinged.
    """
    values = (show_field(event, path) for path in list_places(template) if _is_mention(event, path))
    return {form[1]: form[0] for form in map(_PING.fullmatch, values) if form}


def _show_to_agent(event: CloudEvent, path: str) -> str:
    value = show_field(event, path)
    quoted = quote_untrusted(value, source=f"{event.type} {path}")
    is_plain = len(value) <= INLINE_CHARS and value.isprintable() and f"\n{value}\n" in quoted
    return value if is_plain or not value else f"\n{quoted}\n"


def _show_in_post(event: CloudEvent, path: str) -> str:
    value = show_field(event, path)
    if _is_mention(event, path) and _FORM.fullmatch(value):
        return value
    return escape_markup(" ".join(value.split()))


def _is_mention(event: CloudEvent, path: str) -> bool:
    return event.type.startswith(PLATFORM_TYPES) and path.rpartition(".")[2] == MENTION
