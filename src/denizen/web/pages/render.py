"""Turns a context record into a page. Jinja is imported with the first page, so that programs never pay for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

if TYPE_CHECKING:
    from jinja2 import Environment

_WEB = Path(__file__).parent.parent


@dataclass(frozen=True, slots=True)
class ChatPage:
    """What `chat.html` is given; the rest it asks of `/api`. `can_sign_out` when a sign-in carries the request;
    `simulator` is the address of the simulator's page, or empty; `shows_sources` has the page watch what agents look
    things up in, for those who may.
    """

    version: str
    can_sign_out: bool
    simulator: str = ""
    shows_sources: bool = False


@dataclass(frozen=True, slots=True)
class LoginPage:
    """What `login.html` is given. `problem` is a sentence, or empty."""

    version: str
    problem: str = ""


Page = ChatPage | LoginPage

_TEMPLATES: dict[type[Page], str] = {ChatPage: "chat.html", LoginPage: "login.html"}


def render(page: Page, *, status: int = 200) -> Response:
    template = _environment().get_template(_TEMPLATES[type(page)])
    return HTMLResponse(template.render(page=page), status, {"Cache-Control": "no-store"})


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(loader=FileSystemLoader(_WEB / "templates"), autoescape=True, undefined=StrictUndefined)


class StaticPageFiles(StaticFiles):
    """The page's own files. Browsers ask each time whether they changed, so an upgrade never mixes old and new."""

    def __init__(self) -> None:
        super().__init__(directory=_WEB / "static")

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["Cache-Control"] = "no-cache"
        return response
