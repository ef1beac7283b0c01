"""Reads pages for administrators as people do: by their text, and by the rows of their tables."""

from __future__ import annotations

from html.parser import HTMLParser

import httpx2

from tests.web_fixture import WebFixture

KEYS = {"ann": "key-of-ann", "ben": "key-of-ben", "ada": "key-of-ada", "olga": "key-of-olga"}


class PageText(HTMLParser):
    """The text of a page, with blanks as a browser shows them. `rows` are those of its tables, without heads."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self._hidden = 0
        self._in_cell = False
        self.feed(html)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, *names: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.tags if tag in names]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._hidden += 1
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._hidden -= 1
        if tag == "td":
            self._in_cell = False
        if tag == "tr" and not self.rows[-1]:
            self.rows.pop()

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        self.words.append(data)
        if self._in_cell:
            self.rows[-1][-1] = " ".join(f"{self.rows[-1][-1]} {data}".split())


async def ask(web: WebFixture, who: str, method: str, path: str, **form: str) -> httpx2.Response:
    async with web.client(**{"x-api-key": KEYS[who]}) as client:
        return await client.request(method, path, data=form or None)


async def read(web: WebFixture, who: str, path: str) -> PageText:
    answer = await ask(web, who, "GET", path)
    assert answer.status_code == 200, answer.text
    return PageText(answer.text)
