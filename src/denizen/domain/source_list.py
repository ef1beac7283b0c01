"""Sources proposed from a list that somebody wrote for another program, or that a model read in a picture. Pure.

Names of fields and kinds are taken as the usual programs write them. Nothing of it is trusted: each source passes the
same checks as one that is added by hand, and says what is wrong with it and which of its fields were left aside.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from denizen.domain.errors import DenizenError, InvalidInput
from denizen.domain.json import Json
from denizen.domain.location import SourceKind, read_location
from denizen.domain.record import record
from denizen.domain.source import SOURCE_SETTINGS, Source, SourceChange, check_source, make_visible, name_source

MAX_PROPOSALS = 60
MAX_NESTING = 4
_LOCATIONS = (
    *("location", "repo", "repository", "url", "address", "sitemap", "sitemapurl", "handle", "channelid", "channel"),
    *("path", "folder"),
)
"""Names of the field for the place, folded, the best first."""
_KINDS: Mapping[str, SourceKind] = {
    **{kind.value: kind for kind in SourceKind},
    **dict.fromkeys(("repository", "repositories", "repos", "repo"), SourceKind.GIT),
    **dict.fromkeys(("website", "websites", "web", "sitemaps"), SourceKind.SITEMAP),
    **dict.fromkeys(("youtubechannels", "videos", "video"), SourceKind.YOUTUBE),
    **dict.fromkeys(("folders", "directory", "local"), SourceKind.FOLDER),
}
_SETTINGS: Mapping[str, str] = {
    **{name.replace("_", ""): name for name in SOURCE_SETTINGS},
    "title": "label",
    "ref": "branch",
    "tag": "branch",
    "docspath": "content_path",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNFOLDED = re.compile(r"[^a-z0-9]")


@record(kw_only=True)
class ProposedSource:
    """A source that was found in a list. `problem` says why it cannot be added; `ignored` names fields that no source
    of Denizen has.
    """

    id: str
    location: str
    kind: SourceKind | None
    given: SourceChange
    problem: str = ""
    ignored: tuple[str, ...] = ()


def read_source_list(tree: Json, taken: Collection[str] = ()) -> list[ProposedSource]:
    """Returns the sources in a list, or in a mapping that has lists by kind. Ids in `taken` are not given again.

    Raises InvalidInput when there is none, or there are more than `MAX_PROPOSALS`.
    """
    proposals: list[ProposedSource] = []
    ids = set(taken)
    for item, kind in _list_items(tree, None, 0):
        if len(proposals) == MAX_PROPOSALS:
            raise InvalidInput(
                f"The list has more than {MAX_PROPOSALS} sources.",
                code="list_long",
                fix="Import a part of it at a time.",
            )
        proposal = _read_item(item, kind, ids)
        ids.add(proposal.id)
        proposals.append(proposal)
    if not proposals:
        raise InvalidInput(
            "There is no source in this list.",
            code="list_empty",
            why="No entry says where its documents are.",
            fix="Give each entry a `location` (or `repo`, `url`, `handle`), or write one place a line.",
        )
    return proposals


def read_lines(text: str) -> list[Json]:
    """Returns the lines of a plain list, one place a line, without bullets, blanks and comments."""
    lines = (re.sub(r"^\s*(?:[-*•]|\d+[.)])\s+", "", line).strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _list_items(
    node: Json, kind: SourceKind | None, depth: int
) -> Iterator[tuple[str | Mapping[str, Json], SourceKind | None]]:
    if depth > MAX_NESTING:
        return
    if isinstance(node, list):
        for each in node:
            if isinstance(each, str):
                yield each, kind
            else:
                yield from _list_items(each, kind, depth + 1)
    elif isinstance(node, Mapping):
        folded = {_fold(name): value for name, value in node.items()}
        if any(isinstance(folded.get(name), str) for name in _LOCATIONS):
            yield node, kind
            return
        for name, value in node.items():
            if isinstance(value, list | Mapping):
                yield from _list_items(value, _KINDS.get(_fold(name), kind), depth + 1)


def _read_item(item: str | Mapping[str, Json], kind: SourceKind | None, ids: Collection[str]) -> ProposedSource:
    fields: dict[str, Json] = {"location": item} if isinstance(item, str) else dict(item)
    named = {_fold(name): name for name in fields}
    used: set[str] = set()

    def take(folded: str) -> Json:
        name = named.get(folded)
        used.update({name} if name is not None else ())
        return fields[name] if name is not None else None

    location = next(
        (str(take(name)).strip() for name in _LOCATIONS if isinstance(fields.get(named.get(name, "")), str)), ""
    )
    said = take("kind") or take("type")
    kind = _KINDS.get(_fold(str(said)), kind) if said else kind
    settings = {name: value for folded, name in _SETTINGS.items() if (value := take(folded)) is not None}
    wanted = take("id")
    ignored = tuple(make_visible(name)[:40] for name in fields if name not in used)
    try:
        found, full = read_location(location, kind)
        given = SourceChange(kind=found, **_check_types(settings))
        plain = Source(id="x", kind=found, location=full, created_at=_EPOCH, updated_at=_EPOCH)
        source = replace(given, kind=None).apply(plain)
        source = replace(source, id=_choose_id(wanted if isinstance(wanted, str) else "", full, ids))
        check_source(source)
    except DenizenError as error:
        problem = " ".join(filter(None, (error.message, error.fix)))
        return ProposedSource(
            id="",
            location=make_visible(location)[:200],
            kind=kind,
            given=SourceChange(),
            problem=problem,
            ignored=ignored,
        )
    return ProposedSource(id=source.id, location=full, kind=found, given=given, ignored=ignored)


def _check_types(settings: Mapping[str, Json]) -> Mapping[str, Any]:
    """Returns the settings with their types. Raises InvalidInput for a value of another one."""
    for name, value in settings.items():
        kind = cast("type[object]", SOURCE_SETTINGS[name])
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise InvalidInput(f"'{name}' cannot be that.", code="source_invalid", fix=f"Write a {kind.__name__}.")
    return settings


def _choose_id(wanted: str, location: str, ids: Collection[str]) -> str:
    base = name_source(wanted or location)
    numbered = (f"{base}-{number}" for number in range(2, MAX_PROPOSALS + len(ids) + 2))
    return base if base not in ids else next(each for each in numbered if each not in ids)


def _fold(name: str) -> str:
    return _UNFOLDED.sub("", name.lower())
