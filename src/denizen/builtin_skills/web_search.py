"""Searches the web through Brave's API, which needs a key, or through a SearXNG server, which needs none.

The skill is there only where a provider is configured. Searches by model providers themselves are not used: they would
bypass the gate.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlencode

from denizen.skill import (
    FetchedPage,
    Param,
    Skill,
    Taint,
    Tier,
    ToolContext,
    ToolError,
    ToolOutput,
    quote_untrusted,
    truncate,
)

RESULTS = 5
MAX_SNIPPET_CHARS = 400
MAX_TITLE_CHARS = 200
BRAVE_URL = "https://api.search.brave.com/res/v1"

_URL = re.compile(r"https?://[^\s<>]{1,2000}")
_TAG = re.compile(r"</?[a-z][^<>]{0,200}>", re.IGNORECASE)
_KEY = re.compile(r"[\x21-\x7e]{1,500}")


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """`provider` is `brave` or `searxng`; without one there is no search. `api_key` is Brave's, as
    `${BRAVE_API_KEY}`. `base_url` is the address of the SearXNG server, such as http://searx.lan:8080, which must
    have the format json enabled; for Brave it is known.
    """

    provider: Literal["", "brave", "searxng"] = ""
    api_key: str = field(default="", repr=False)
    base_url: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for a missing setting of the provider. The error never repeats the key."""
        if self.provider == "brave" and not _KEY.fullmatch(self.api_key):
            raise ValueError("Brave needs api_key: ${BRAVE_API_KEY}, with the key in secrets.env or the environment")
        if self.provider == "searxng" and not self.base_url:
            raise ValueError("SearXNG needs base_url, such as http://searx.lan:8080")
        if self.base_url and not self.base_url.startswith(("http://", "https://")):
            raise ValueError("base_url is a web address in full, such as http://searx.lan:8080")
        if self.provider == "brave" and not self.base_url:
            # The dataclass is frozen; the default depends on the provider.
            object.__setattr__(self, "base_url", BRAVE_URL)


skill = Skill("web_search", description="Searches the web.", settings=SearchSettings)


@dataclass(frozen=True, slots=True)
class _Hit:
    title: str
    url: str
    snippet: str


@skill.tool(tier=Tier.LIMITED, read_only=True, idempotent=True, reads={Taint.WEB})
async def web_search(
    context: ToolContext, query: Annotated[str, Param(min_length=1, max_length=400)]
) -> str | ToolOutput:
    """Searches the web: titles, URLs, excerpts. Search your knowledge files first, where you have any."""
    settings = context.settings(SearchSettings)
    words = " ".join(query.split())
    if not words:
        raise ToolError("Give some words to search for.", is_own=True)
    match settings.provider:
        case "brave":
            hits = await _ask_brave(context, settings, words)
        case "searxng":
            hits = await _ask_searxng(context, settings, words)
        case _:
            raise ToolError("No search is configured. The owner sets tools.web_search.provider.", is_own=True)
    if not hits:
        return ToolOutput(f"Nothing was found on the web for: {words}", is_own=True)
    entries = [f"{at}. {hit.title}\n{hit.url}\n{hit.snippet}".rstrip() for at, hit in enumerate(hits, 1)]
    return quote_untrusted("\n\n".join(entries), source=f"web search: {words}")


async def _ask_brave(context: ToolContext, settings: SearchSettings, words: str) -> list[_Hit]:
    query = urlencode({"q": words, "count": RESULTS})
    page = await context.fetch(
        f"{settings.base_url.rstrip('/')}/web/search?{query}", headers={"X-Subscription-Token": settings.api_key}
    )
    # Brave answers 422 for a malformed key.
    if page.status in (401, 403, 422):
        raise ToolError(
            f"Brave refused the search (HTTP status {page.status}). The owner checks tools.web_search.api_key."
        )
    found = _read(page).get("web")
    return _hits(cast("Mapping[str, Any]", found).get("results") if isinstance(found, dict) else None, "description")


async def _ask_searxng(context: ToolContext, settings: SearchSettings, words: str) -> list[_Hit]:
    query = urlencode({"q": words, "format": "json"})
    page = await context.fetch(f"{settings.base_url.rstrip('/')}/search?{query}")
    if page.status == 403:
        raise ToolError("The SearXNG server refused the format json. Its settings.yml needs `json` in search.formats.")
    return _hits(_read(page).get("results"), "content")


def _read(page: FetchedPage) -> Mapping[str, Any]:
    """Returns the JSON object of the service. Raises ToolError for anything else."""
    if page.status == 429:
        raise ToolError("The search service is asked too often at the moment. Try again later.")
    try:
        answer = json.loads(page.text)
    except (ValueError, RecursionError):
        answer = None
    if page.status != 200 or not isinstance(answer, dict):
        raise ToolError(f"The search service did not answer with results (HTTP status {page.status}).")
    return cast("Mapping[str, Any]", answer)


def _hits(rows: object, snippet: str) -> list[_Hit]:
    """Returns the results with an address; malformed ones are skipped."""
    given = cast("Sequence[object]", rows) if isinstance(rows, list) else ()
    found = [cast("Mapping[str, Any]", row) for row in given if isinstance(row, dict)]
    return [
        _Hit(_plain(row.get("title"), MAX_TITLE_CHARS), row["url"].strip(), _plain(row.get(snippet), MAX_SNIPPET_CHARS))
        for row in found
        if isinstance(row.get("url"), str) and _URL.fullmatch(row["url"].strip())
    ][:RESULTS]


def _plain(value: object, limit: int) -> str:
    """Returns one line without markup."""
    text = " ".join(html.unescape(_TAG.sub("", value)).split()) if isinstance(value, str) else ""
    return truncate(text, limit)
