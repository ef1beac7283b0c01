"""The documentation, readable inside: `/help` lists its pages, `/help/{page}` shows one.

The folders of `manual` are links to those of the documentation, which a wheel has as folders. The script of the page
renders their Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from denizen.domain.errors import NotFound
from denizen.domain.record import record
from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import Access, SitePageRoute
from denizen.web.pages.page import Frame, build_frame, render

HELP = "/help"
_MANUAL = Path(__file__).parents[1] / "manual"
_LEFT_OUT = frozenset({"requirements"})
_LOCAL_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\((?![a-z]+:)([^()\s#]+)(#[^()\s]*)?\)")
_FOLDERS = (("tutorial", "Begin"), ("how-to", "How to"), ("reference", "Reference"))


@record
class ManualPage:
    """A page of the manual. `name` is its address below `/help`."""

    name: str
    title: str
    text: str


@record
class ManualPart:
    """Pages under a title."""

    title: str
    pages: Sequence[ManualPage]


@record(kw_only=True)
class HelpPage:
    """The context of `help.html`: the list of pages, with `query` only those that have its words."""

    frame: Frame
    parts: Sequence[ManualPart]
    query: str


@record(kw_only=True)
class ManualPagePage:
    """The context of `manual.html`: one page, as Markdown."""

    frame: Frame
    title: str
    text: str


class HelpPages:
    """The routes of the help."""

    def __init__(self, deps: WebDependencies) -> None:
        self._deps = deps

    @property
    def routes(self) -> list[SitePageRoute]:
        return [
            SitePageRoute("GET", HELP, self.list, Access.MEMBER),
            SitePageRoute("GET", f"{HELP}/{{page}}", self.show, Access.MEMBER),
        ]

    async def list(self, request: Request) -> Response:
        query = request.query_params.get("q", "").strip()[:200]
        words = query.casefold().split()
        parts = [
            ManualPart(part.title, [page for page in part.pages if all(word in page.text.casefold() for word in words)])
            for part in await to_thread.run_sync(load_manual)
        ]
        found = [part for part in parts if part.pages]
        return render("help.html", HelpPage(frame=build_frame(request, self._deps), parts=found, query=query))

    async def show(self, request: Request) -> Response:
        name = request.path_params["page"]
        pages = [page for part in await to_thread.run_sync(load_manual) for page in part.pages]
        found = next((page for page in pages if page.name == name), None)
        if found is None:
            raise NotFound(f"There is no page '{name[:100]}'.", code="help_not_found", fix=f"See {HELP} for all.")
        page = ManualPagePage(frame=build_frame(request, self._deps), title=found.title, text=found.text)
        return render("manual.html", page)


@lru_cache(maxsize=1)
def load_manual() -> Sequence[ManualPart]:
    """Returns the manual, which does not change while the process runs."""
    paths = {folder: sorted((_MANUAL / folder).glob("*.md")) for folder, _ in _FOLDERS}
    names = {path.stem for found in paths.values() for path in found} - _LEFT_OUT
    return [
        ManualPart(title, [_load_page(path, names) for path in paths[folder] if path.stem in names])
        for folder, title in _FOLDERS
    ]


def _load_page(path: Path, names: Collection[str]) -> ManualPage:
    """Returns the page without the comment that says what generates it, and without its title, which stands above.
    Links to other pages lead to the help; other links within the repository stay as words.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    at = next((number for number, line in enumerate(lines) if line.startswith("# ")), 0)

    def lead(match: re.Match[str]) -> str:
        words, file, anchor = match.groups()
        name = PurePosixPath(file).stem
        return f"[{words}]({HELP}/{name}{anchor or ''})" if name in names else words

    text = _LOCAL_LINK.sub(lead, "\n".join(lines[at + 1 :]).strip())
    return ManualPage(path.stem, lines[at].removeprefix("# "), text)
