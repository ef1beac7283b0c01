"""Texts of workflows that know which parts of them the workflow's author wrote. All else is foreign: a field of an
event, the answer of a tool, what a model made of it. Pure.

In a post nothing foreign is markup. A text may have passed through several nodes before it is posted, so where it came
from is kept with each part. Whatever loses that on its way, as every method of `str` does, is foreign from then on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from denizen.domain.json import Json
from denizen.domain.record import record

_LINK_OR_MARKUP = re.compile(r"https?://[^\s<>\[\]()`*|\\\"]+|[\\`*_~|\[\]<>#@]")


@record
class TextPiece:
    """A piece of a text, and whether the author wrote it."""

    text: str
    is_authored: bool


class AuthoredText(str):
    """A text of which at least one part is the author's."""

    __slots__ = ("parts",)
    parts: tuple[TextPiece, ...]

    @classmethod
    def of(cls, parts: Iterable[TextPiece]) -> Self:
        """Joins parts. Neighbours of the same origin become one."""
        joined: list[TextPiece] = []
        for part in parts:
            if joined and joined[-1].is_authored == part.is_authored:
                joined[-1] = TextPiece(joined[-1].text + part.text, part.is_authored)
            elif part.text:
                joined.append(part)
        text = cls("".join(each.text for each in joined))
        text.parts = tuple(joined)
        return text


def author(text: str) -> AuthoredText:
    """Returns the text as one that the author wrote."""
    return AuthoredText.of([TextPiece(str(text), is_authored=True)])


def author_all(value: Json) -> Json:
    """Returns the value with all texts in it as the author's."""
    match value:
        case str():
            return author(value)
        case Mapping():
            return {name: author_all(each) for name, each in value.items()}
        case Sequence():
            return [author_all(each) for each in value]
        case _:
            return value


def forget_author(value: Json) -> Json:
    """Returns the value with plain texts, for what is outside of workflows."""
    match value:
        case str():
            return str(value)
        case Mapping():
            return {name: forget_author(each) for name, each in value.items()}
        case Sequence():
            return [forget_author(each) for each in value]
        case _:
            return value


def list_parts(text: str) -> Sequence[TextPiece]:
    """Returns the parts of any text; a plain one is foreign."""
    return text.parts if isinstance(text, AuthoredText) else [TextPiece(text, is_authored=False)]


def join_texts(separator: str, texts: Iterable[str]) -> AuthoredText:
    """Joins texts by a separator of the author's."""
    parts: list[TextPiece] = []
    for number, text in enumerate(texts):
        parts += [TextPiece(separator, is_authored=True)] if number else []
        parts += list_parts(text)
    return AuthoredText.of(parts)


def is_authored(text: str) -> bool:
    """Whether all of it is the author's."""
    return all(part.is_authored for part in list_parts(text))


def write_post(text: str) -> str:
    """Returns the text as it is posted: what is foreign has no markup, and begins no line that the author did not
    begin. Only what has a line for itself may be several.
    """
    parts, written = list_parts(text), list[str]()
    for at, part in enumerate(parts):
        begins = at == 0 or parts[at - 1].text.endswith("\n")
        ends = at == len(parts) - 1 or parts[at + 1].text.startswith("\n")
        if part.is_authored:
            written.append(part.text)
        else:
            written.append(escape_markup(part.text if begins and ends else " ".join(part.text.split())))
    return "".join(written)


def escape_markup(text: str) -> str:
    """Returns a foreign text in which nothing is markup or a mention. Addresses of pages go on to lead there."""

    def escape(found: re.Match[str]) -> str:
        said = found[0]
        if len(said) > 1:
            return said.replace("@", "%40")
        return "@\u200b" if said == "@" else f"\\{said}"

    return _LINK_OR_MARKUP.sub(escape, text)
