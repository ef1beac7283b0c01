"""The Markdown of comments: @mentions in what people write, and our content as a comment and back. Pure.

Code, quotations and hidden comments mention nobody. Logins have letters, digits and single hyphens; an App is
mentioned by its slug, with or without `[bot]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from denizen.adapters.github.settings import BODY_CHARS
from denizen.domain.delivery import EmbedCard, MessageContent
from denizen.domain.markup import Span, Spans, list_code_spans, list_fences, replace_spans
from denizen.domain.reasoning import HEAD

_AT = re.compile(r"(?<![\w`@/.+-])@(?P<name>[A-Za-z0-9](?:-?[A-Za-z0-9])*)(?P<bot>\[bot\])?(?![\w`-])(?!/)")
# A team is mentioned as `@owner/team`, which pings all its members.
_TEAM = re.compile(r"(?<![\w`@/.+-])@[A-Za-z0-9](?:-?[A-Za-z0-9])*/[\w.-]+")
_QUOTED = re.compile(r"^[ ]{0,3}>.*$", re.MULTILINE)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def list_mentions(text: str) -> tuple[str, ...]:
    """Returns the mentioned logins in lower case, in the order of the text, each once."""
    return tuple(dict.fromkeys(match["name"].lower() for match in _calls(text)))


def strip_mentions(text: str, own: str) -> str:
    """Returns the text without its own mention and hidden comments, and with other mentions as plain names."""
    edits: list[tuple[Span, str]] = []
    for match in _calls(text):
        is_own = match["name"].lower() == own.lower()
        edits.append((match.span(), "" if is_own else match["name"] + (match["bot"] or "")))
    return _HIDDEN.sub("", replace_spans(text, edits, tight=",:")).strip()


def defuse(text: str, leave: Iterable[Span] = ()) -> str:
    """Returns an agent's words with each `@name` as code, so that it notifies nobody, except in the spans `leave`."""
    others = [Spans(_code(text)), Spans(leave)]
    found = [match for pattern in (_AT, _TEAM) for match in pattern.finditer(text) if not _is_in(match.start(), others)]
    return replace_spans(text, sorted((match.span(), f"`{match[0]}`") for match in found))


def _calls(text: str) -> Iterator[re.Match[str]]:
    hidden = (Spans(match.span() for match in pattern.finditer(text)) for pattern in (_QUOTED, _HIDDEN))
    uncalled = [Spans(_code(text)), *hidden]
    return (match for match in _AT.finditer(text) if not _is_in(match.start(), uncalled))


def _code(text: str) -> list[Span]:
    fences = list_fences(text)
    return [*((fence.start, fence.end) for fence in fences), *list_code_spans(text, fences)]


def _is_in(at: int, kinds: Iterable[Spans]) -> bool:
    """Whether the position is inside of one of these kinds. Each kind is checked alone, since a comment that begins in
    a quotation reaches beyond it.
    """
    return any(spans.find_around(at, or_at_start=True) for spans in kinds)


MARK_CHARS = 64
"""The length of the hidden mark in a comment."""
TEXT_CHARS = BODY_CHARS - MARK_CHARS
"""The longest text of one piece of an answer."""

# Only at the very end: a mark that is quoted elsewhere in a text does not count.
_MARK = re.compile(r"<!-- denizen:(?P<nonce>\w{1,32}) -->\Z")
_SMALL = re.compile(r"^-# (?P<text>.*)$", re.MULTILINE)
_ENDS = r"\r\u2028\u2029"
"""Further line ends, which programs that read comments recognize."""
_COMMAND = re.compile(rf"(?:^|(?<=[{_ENDS}]))[^\S\n{_ENDS}]*+(?P<slash>/)(?=\w)", re.MULTILINE)
_PING = re.compile(r"<@!?(?P<id>\d+)>")


def to_body(content: MessageContent, logins: Mapping[str, str], *, nonce: str = "") -> str:
    """Returns our content as a comment. `logins` maps the ids of pinged users to logins; other users stay unnamed."""
    pings = [ping.span() for ping in _PING.finditer(content.text)]
    text = _folded(defuse(content.text, pings))
    text = _PING.sub(lambda ping: _called(ping["id"], content, logins), text)
    links = [f"[{button.label}]({button.url})" for button in content.buttons if button.url]
    parts = [text, *map(_card, content.embeds), " · ".join(links)]
    if content.files:
        names = ", ".join(f"`{file.name}`" for file in content.files)
        parts.append(f"<sub>GitHub takes no files from programs; left out: {names}</sub>")
    body = _uncommanding("\n\n".join(part for part in parts if part.strip()))[:TEXT_CHARS]
    return f"{body}\n\n<!-- denizen:{nonce} -->" if nonce else body


def from_body(body: str) -> tuple[str, str]:
    """Returns the text that people read, and the nonce; the nonce is empty if there is none."""
    written = body.rstrip()
    found = _MARK.search(
        written, max(0, len(written) - MARK_CHARS)
    )  # strangers write long bodies, so only the end is parsed
    return (written[: found.start()].rstrip("\n"), found["nonce"]) if found else (body, "")


def _folded(text: str) -> str:
    """Returns the text with reasoning folded behind a click and small print small. Code stays as it is."""
    if text.startswith(f"{HEAD}\n||"):
        thoughts = text.removeprefix(HEAD).strip().strip("|").strip()
        return f"<details><summary>{HEAD.removeprefix('-# ').capitalize()}</summary>\n\n{thoughts}\n\n</details>"
    code = Spans((fence.start, fence.end) for fence in list_fences(text))
    small = [match for match in _SMALL.finditer(text) if code.find_around(match.start(), or_at_start=True) is None]
    return replace_spans(text, [(match.span(), f"<sub>{match['text']}</sub>") for match in small])


def _uncommanding(text: str) -> str:
    """Escapes lines such as `/merge`, which other bots obey if the login may write. They look the same."""
    code = Spans((fence.start, fence.end) for fence in list_fences(text))
    found = [match.span("slash") for match in _COMMAND.finditer(text)]
    return replace_spans(text, [(span, "\\/") for span in found if code.find_around(span[0], or_at_start=True) is None])


def _called(user_id: str, content: MessageContent, logins: Mapping[str, str]) -> str:
    login = logins.get(user_id, "")
    if not login:
        return "somebody"
    return f"@{login}" if user_id in content.ping_users else login


def _card(embed: EmbedCard) -> str:
    title = f"[{embed.title}]({embed.url})" if embed.title and embed.url else embed.title
    rows = [f"- **{name}**: {value}" for name, value in embed.fields]
    image = f"![]({embed.image})" if embed.image.startswith("https://") else ""
    parts = [f"**{title}**" if title else "", defuse(embed.text), defuse("\n".join(rows)), image]
    return "\n\n".join(part for part in parts if part)
