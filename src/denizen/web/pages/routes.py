"""All pages, and the files that they load."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import BaseRoute

from denizen.web.http.dependencies import WebDependencies
from denizen.web.http.routing import PublicMount
from denizen.web.pages.chat import ChatPages
from denizen.web.pages.page import StaticPageFiles
from denizen.web.pages.sign_in import SignInPages
from denizen.web.pages.sources import SourcePages


def list_pages(deps: WebDependencies) -> Sequence[BaseRoute]:
    return [
        *ChatPages(deps).routes,
        *SignInPages(deps).routes,
        *(SourcePages(deps, deps.knowledge).routes if deps.knowledge is not None else ()),
        PublicMount("/static", StaticPageFiles()),
    ]
