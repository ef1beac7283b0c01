"""Attachments of a tool's result, shown to people besides its text: images, files, cards and buttons.

The `data` of a result has, all of them optional:

    images   [{"url": "https://... or data:...", "title": "", "links": {"north": "https://..."}}]
    files    [{"url": "data:...", "name": "report.csv"}]
    embeds   [{"title": "", "text": "", "url": "", "image": "https://...", "fields": {"name": "value"},
               "color": "#rrggbb"}]
    buttons  [{"label": "Yes", "value": "Yes, do it"}] or [{"label": "Open", "url": "https://..."}]

A result of a sprite maker may say `imageUrl` or `image_url` instead, with the other views in `directions`. What does
not have such a form is left out: it was made by a tool, and an answer must not fail because of it.
"""

from __future__ import annotations

import mimetypes
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from denizen.domain.data_uri import DataUri, extract_data_uris, strip_markers
from denizen.domain.delivery import EmbedCard, MessageButton, MessageContent, OutgoingFile
from denizen.domain.json import Json
from denizen.domain.markup import replace_spans

MAX_IMAGES = 20
"""Each is a message of its own on a platform, and whoever writes a page that is read chooses how many it holds."""
MAX_LINKS = 25
MAX_EMBEDS = 10
MAX_FILES = 10
MAX_BUTTONS = 25
_WEB = ("https://", "http://")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")


def collect_extras(
    results: Iterable[Mapping[str, Any]], uris: Sequence[DataUri] = (), *, stored: str = ""
) -> tuple[MessageContent, ...]:
    """One content for each of the first images, and one for everything else, which comes first when there is anything
    in it.

    `uris` are data URIs that stood in the answer itself. Images whose addresses begin with `stored` are shown by them.
    """
    images: list[MessageContent] = []
    embeds: list[EmbedCard] = []
    files: list[OutgoingFile] = []
    buttons: list[MessageButton] = []
    for data in (gather_images(result) for result in results):
        images += [found for row in _rows(data, "images") if (found := _image(row, len(images), stored))]
        embeds += [_embed(row) for row in _rows(data, "embeds")]
        files += [found for row in _rows(data, "files") if (found := _file(row))]
        buttons += [found for row in _rows(data, "buttons") if (found := _button(row))]
    images += [_shown(_named(uri, len(images) + at), "", ()) for at, uri in enumerate(uris)]
    images = images[:MAX_IMAGES]
    rest = MessageContent("", tuple(embeds[:MAX_EMBEDS]), tuple(files[:MAX_FILES]), tuple(buttons[:MAX_BUTTONS]))
    if rest == MessageContent():
        return tuple(images)
    if len(images) == 1 and not rest.embeds and not rest.files:
        return (MessageContent("", images[0].embeds, images[0].files, rest.buttons),)
    return (rest, *images)


def list_pictures(contents: Iterable[MessageContent]) -> tuple[str, ...]:
    """Returns the pictures as data URIs and web addresses, for readers without cards."""
    found: list[str] = []
    for content in contents:
        files = {f"attachment://{file.name}": file for file in content.files}
        pictures = dict.fromkeys(card.image for card in content.embeds if card.image)
        pictures |= dict.fromkeys(name for name, file in files.items() if file.media_type.startswith("image/"))
        found += [_data_uri(files[name]) if name in files else name for name in pictures]
    return tuple(found)


def omit_addresses(text: str, shown: Iterable[Mapping[str, Any]]) -> str:
    """Returns the text without the web addresses of pictures that are shown beside it, nor those of their other views.
    The words of links stay.
    """
    rows = [row for data in map(gather_images, shown) for row in _rows(data, "images")][:MAX_IMAGES]
    urls = {url for row in rows for url in (_text(row, "url"), *(link for _, link in _pairs(row, "links")[:MAX_LINKS]))}
    known = sorted((re.escape(url) for url in urls if url.startswith(_WEB)), key=len, reverse=True)
    if not known:
        return text
    address = f"<?(?:{'|'.join(known)})(?![^\\s<>()\\[\\]\"'`])>?"
    found = re.finditer(rf"!?\[(?P<words>[^\[\]\n]*)\]\({address}\)|{address}", text)
    return replace_spans(text, [(match.span(), match["words"] or "") for match in found], tight=".,;:!?")


def describe_cards(contents: Iterable[MessageContent]) -> str:
    """Returns the cards, buttons and files as Markdown, for readers without cards. Pictures are not in it."""
    lines: list[str] = []
    for content in contents:
        for card in content.embeds:
            title = f"[{card.title}]({card.url})" if card.title and card.url else card.title or card.url
            fields = [f"{name}: {value}" for name, value in card.fields]
            # A picture without more than a title speaks for itself.
            if card.text or fields or not card.image:
                lines.append("  \n".join(line for line in (title and f"**{title}**", card.text, *fields) if line))
        lines += [
            f"[{button.label}]({button.url})" if button.url else f"{button.label}: say “{button.value}”"
            for button in content.buttons
        ]
        lines += [
            f"The file {file.name} ({file.media_type}) cannot be shown here."
            for file in content.files
            if not file.media_type.startswith("image/")
        ]
    return "\n\n".join(lines)


def _data_uri(file: OutgoingFile) -> str:
    return f"data:{file.media_type};base64,{b64encode(file.data).decode()}"


def extract_attachments(text: str, data: Mapping[str, Json]) -> tuple[str, Mapping[str, Json]]:
    """A result's text without the pictures and files in it, and its data with them: they go to people, and neither to
    a model nor into the record of what it read. Markers of older tools go the same way.
    """
    unmarked = strip_markers(text)
    found = extract_data_uris(unmarked.text)
    rows: dict[str, list[Json]] = {"images": [], "files": []}
    for uri in found.uris:
        kind = "images" if uri.media_type.startswith("image/") else "files"
        url = _data_uri(OutgoingFile(uri.name, uri.media_type, uri.data))
        rows[kind].append({"url": url, "name": uri.name})
    for marker in unmarked.results:
        rows["images"] += cast("list[Json]", gather_images(marker).get("images", []))
    if found.text == text and not any(rows.values()):
        return text, data
    more = {kind: [*_rows(data, kind), *added] for kind, added in rows.items() if added}
    return found.text or "Shown to the user.", {**data, **cast("dict[str, Json]", more)}


def gather_images(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the data with its `imageUrl` or `image_url` as the first of its `images`."""
    url = _text(data, "imageUrl") or _text(data, "image_url")
    if not url:
        return data
    shown = {"url": url, "title": _text(data, "title"), "links": data.get("directions", {})}
    rest = {key: value for key, value in data.items() if key not in ("imageUrl", "image_url")}
    return {**rest, "images": [shown, *_rows(data, "images")]}


def _rows(data: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = data.get(name)
    if not isinstance(rows, list):
        return []
    return [cast("Mapping[str, Any]", row) for row in cast("list[object]", rows) if isinstance(row, Mapping)]


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name, "")
    return value if isinstance(value, str) else ""


def _pairs(row: Mapping[str, Any], name: str) -> tuple[tuple[str, str], ...]:
    value = row.get(name)
    if not isinstance(value, Mapping):
        return ()
    pairs = cast("Mapping[object, object]", value)
    return tuple((str(key), item) for key, item in pairs.items() if isinstance(item, str) and item)


def _image(row: Mapping[str, Any], number: int, stored: str) -> MessageContent | None:
    url, title = _text(row, "url"), _text(row, "title")
    pairs = _pairs(row, "links")[:MAX_LINKS]
    links = tuple((name, f"[open]({link})") for name, link in pairs if link.startswith(_WEB))
    if url.startswith(_WEB) or (stored and url.startswith(stored)):
        return MessageContent("", (EmbedCard(title, image=url, fields=links),))
    found = extract_data_uris(url).uris
    return _shown(_named(found[0], number), title, links) if found else None


def _shown(file: OutgoingFile, title: str, fields: tuple[tuple[str, str], ...]) -> MessageContent:
    """A picture is shown in a card; anything else is only sent along."""
    if not file.media_type.startswith("image/"):
        return MessageContent("", files=(file,))
    return MessageContent("", (EmbedCard(title, image=f"attachment://{file.name}", fields=fields),), (file,))


def _file(row: Mapping[str, Any]) -> OutgoingFile | None:
    found = extract_data_uris(_text(row, "url")).uris
    if not found:
        return None
    name = "".join(c if c.isalnum() or c in "._-" else "-" for c in _text(row, "name"))[-80:]
    return OutgoingFile(name or _named(found[0], 0).name, found[0].media_type, found[0].data)


def _named(uri: DataUri, number: int) -> OutgoingFile:
    ending = mimetypes.guess_extension(uri.media_type) or ".bin"
    return OutgoingFile(f"image-{number + 1}{ending}", uri.media_type, uri.data)


def _embed(row: Mapping[str, Any]) -> EmbedCard:
    url, image = _text(row, "url"), _text(row, "image")
    return EmbedCard(
        title=_text(row, "title")[:256],
        text=_text(row, "text")[:4000],
        url=url if url.startswith(_WEB) else "",
        image=image if image.startswith(_WEB) else "",
        fields=tuple((name[:256], value[:1024]) for name, value in _pairs(row, "fields"))[:25],
        colour=_colour(_text(row, "color") or _text(row, "colour")),
    )


def _colour(text: str) -> int | None:
    return int(text[1:], 16) if _COLOUR.fullmatch(text) else None


def _button(row: Mapping[str, Any]) -> MessageButton | None:
    label, url, value = _text(row, "label")[:80], _text(row, "url"), _text(row, "value")
    if not label or not (value or url.startswith(_WEB)):
        return None
    return MessageButton(label, url if url.startswith(_WEB) else "", value)
