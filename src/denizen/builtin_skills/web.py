"""Reads a page of the web. Its text is data from strangers and is marked as such."""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from typing import Annotated

from denizen.builtin_skills.page_text import PageText, extract_page_text
from denizen.builtin_skills.paging import read_part
from denizen.skill import (
    FetchedPage,
    InvalidInput,
    NotAllowed,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    quote_untrusted,
    run_in_thread,
)

TIMEOUT_S = 15.0
MAX_INDENT_CHARS = 1_000_000
"""Indenting may add this much to a JSON text: in deeply nested JSON, each number gets a thousand spaces."""

skill = Skill("web", description="Reads pages of the web.")


@skill.tool(tier=Tier.LIMITED, read_only=True, timeout_s=TIMEOUT_S + 5, reads={Taint.WEB})
async def fetch_url(
    context: ToolContext,
    url: Annotated[str, Param("http or https", max_length=4000)],
    start: Annotated[int, Param("character to begin at, to read on", ge=0)] = 0,
) -> str:
    """Reads a web page, text or JSON by its URL."""
    try:
        page = await context.fetch(url, timeout_s=TIMEOUT_S)
    except (InvalidInput, NotAllowed) as refused:
        raise ToolError(refused.explain(), is_own=True) from refused
    if page.status >= 400:
        why = f"{page.url} answered {page.status} {_phrase(page.status)}".rstrip() + "."
        raise ToolError(why, is_own=page.url == url)  # a redirect may lead to an address with a message in it
    content = await run_in_thread(partial(_readable, page))
    if not content.text:
        raise ToolError(f"{page.url} has no text that can be read ({page.media_type or 'unknown type'}).")
    part, more = read_part(content.text, start, what=page.url)
    heading = f"{content.title}\n\n" if content.title and start == 0 else ""
    if not more and page.truncated:
        more = f"The page is longer; only its first {page.size_bytes} bytes were read."
    return "\n".join(filter(None, (quote_untrusted(f"{heading}{part}", source=page.url), more)))


def _readable(page: FetchedPage) -> PageText:
    """Returns HTML as text, JSON indented, other text as it is; no text for pictures and the like."""
    kind = page.media_type
    if kind in {"text/html", "application/xhtml+xml"} or (not kind and page.text.lstrip()[:1] == "<"):
        return extract_page_text(page.text, page.url)
    if kind == "application/json" or kind.endswith("+json"):
        return PageText("", _indented(page.text))
    return PageText("", page.text.strip())


def _indented(text: str) -> str:
    """Indents JSON. Text that is no JSON, or nested beyond reason, stays as it is."""
    room, pieces = len(text) + MAX_INDENT_CHARS, list[str]()
    try:
        for piece in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(json.loads(text)):
            pieces.append(piece)
            room -= len(piece)
            if room < 0:
                return text.strip()
    except (ValueError, RecursionError):
        return text.strip()
    return "".join(pieces)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
