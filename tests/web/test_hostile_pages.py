"""Whatever people and models write stays text on every page that the server makes.

Each text of each page's context is replaced by 240 payloads: the page must have the same elements and attributes as
with a harmless word, and no address that is a script.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest

import denizen.web
from denizen.web.pages.page import render_text
from tests.web.browser.test_hostile_texts import PAYLOADS
from tests.web.test_pages import PAGES

ADDRESSES = (
    "javascript:window.hit=1",
    " JaVaScRiPt:window.hit=1",
    "data:text/html,<script>1</script>",
    "//evil.example",
)
BREAKOUTS = "\n".join(
    (*PAYLOADS, "\"'`> </textarea></title></script></style>--> {{ page }} ${page} <![CDATA[", "\x00\ud800")
)
OF_THE_SERVER = frozenset(
    {
        "path",
        "href",
        "older",
        "newer",
        "back",
        "onward",
        "simulator",
        "sections",
        "parents",
        "invite_url",
        "setup",
        "forms",
    }
)
"""Fields for addresses that the server makes itself."""
_PLAIN = frozenset({"class"})
SHOWN_TEXT = {"code": _PLAIN, "pre": _PLAIN, "del": _PLAIN, "ins": _PLAIN, "a": frozenset({"href", "target", "rel"})}
"""How a text is shown as its lines, backticks and web addresses have it, and which attributes that has."""
_ADDRESS = frozenset({"href", "src", "action", "formaction", "poster", "data", "xlink:href", "srcset"})

HARMLESS = re.sub(r"[^\n]+", "word", BREAKOUTS)
"""As many lines: some pages show several in another field."""
AS_IT_IS = re.compile(r"\|\s*safe\b|\bMarkup\(|autoescape\s*(false|=\s*False)|<script(?![^>]*\bsrc=)")

Path_ = tuple[str | int, ...]


class Structure(HTMLParser):
    """The elements of a page with the names of their attributes, and its addresses."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in SHOWN_TEXT or not {name for name, _ in attrs} <= SHOWN_TEXT[tag]:
            self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.addresses += [value or "" for name, value in attrs if name in _ADDRESS]

    def handle_comment(self, data: str) -> None:
        self.elements.append((f"<!--{data}", ()))


def list_texts(value: object, path: Path_ = ()) -> Iterator[Path_]:
    """The places of all texts in a context."""
    if isinstance(value, str) and not isinstance(value, enum.Enum):
        yield path
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from list_texts(getattr(value, field.name), (*path, field.name))
    elif isinstance(value, Mapping):
        for key, each in cast("Mapping[str, object]", value).items():
            yield from list_texts(each, (*path, key))
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for number, each in enumerate(cast("Sequence[object]", value)):
            yield from list_texts(each, (*path, number))


def put(value: Any, path: Path_, text: str) -> Any:
    """The context with another text at a place."""
    if not path:
        return text
    first, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {**value, first: put(value[first], rest, text)}
    if isinstance(value, Sequence):
        return [put(each, rest, text) if number == first else each for number, each in enumerate(value)]
    return dataclasses.replace(value, **{str(first): put(getattr(value, str(first)), rest, text)})


def list_foreign(addresses: Sequence[str]) -> list[str]:
    """The addresses that are scripts or data, or lead to another site without saying so."""
    return [each for each in addresses if re.match(r"\s*(javascript|data|vbscript):|\s*//", each, re.IGNORECASE)]


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_no_text_of_a_page_becomes_an_element_an_attribute_or_a_script(name: str, page: object) -> None:
    for path in list_texts(page):
        if path[:2] == ("frame", "navigation") or (path[0], path[-1]) == ("limits", "field"):  # texts of ours
            continue
        usual = Structure(render_text(name, put(page, path, HARMLESS)))
        hostile = Structure(render_text(name, put(page, path, BREAKOUTS)))
        assert hostile.elements == usual.elements, f"{name}: {path} is not escaped"
        assert not list_foreign(hostile.addresses), f"{name}: {path} becomes an address of a script"
        is_ours = path[-1] in OF_THE_SERVER or path[0] in OF_THE_SERVER or "form" in path
        for address in () if is_ours else ADDRESSES:
            told = Structure(render_text(name, put(page, path, address))).addresses
            assert not list_foreign(told), f"{name}: {path} is an address that somebody else writes"


class Attributes(HTMLParser):
    """The names of all attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names |= {name for name, _ in attrs}


def test_no_attribute_runs_into_the_next_one() -> None:
    names = {name for page, context in PAGES.items() for name in Attributes(render_text(page, context)).names}
    assert not [name for name in names if re.search(r"\w(aria-|data-|hx-)", name)]


def test_no_template_writes_a_text_as_it_is() -> None:
    web = Path(denizen.web.__file__).parent
    for file in web.rglob("*"):
        if file.suffix in {".html", ".py"}:
            wrong = AS_IT_IS.search(file.read_text())
            assert wrong is None, f"{file.name}: {wrong and wrong[0]}"
