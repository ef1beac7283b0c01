"""The subject of a talk, on platforms that give it a title and an opening: an issue, a pull request, a discussion.
Pure.

Who routes a question or puts a prompt together gets it by `engine/prompt/notes.load_subject`. The opening itself is a
post in the archive, so that it follows what becomes of it there: edits, deletions, what its author chose.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from denizen.domain.json import JsonObject
from denizen.domain.record import record

BODY_CHARS = 1000
"""The characters of the opening that an agent is told."""
ROUTED_CHARS = 500
"""The characters of the opening that a router is shown."""


@record
class Subject:
    """`origin` is the community, such as `owner/repository`; `kind` in words, such as `issue`; `opening` the id of the
    post that began it. `body` is what that says, up to `BODY_CHARS`; empty where it is not known or not kept.
    """

    origin: str
    number: int
    title: str
    kind: str = ""
    labels: tuple[str, ...] = ()
    opening: str = ""
    body: str = ""

    def describe(self, *, body_chars: int = BODY_CHARS) -> str:
        """Origin, `#number title`, labels and the beginning of the body, each on its own lines."""
        lines = [self.origin, f"#{self.number} {self.title}"]
        lines += [f"Labels: {', '.join(self.labels)}"] if self.labels else []
        body = self.body[:body_chars].strip()
        return "\n".join([*lines, body] if body else lines)


def subject_to_json(subject: Subject) -> JsonObject:
    """For the options of a turn, without the body."""
    row: JsonObject = {
        "origin": subject.origin,
        "number": subject.number,
        "title": subject.title,
        "kind": subject.kind,
        "labels": list(subject.labels),
        "opening": subject.opening,
    }
    return {name: value for name, value in row.items() if value}


def subject_from_json(row: Mapping[str, Any]) -> Subject:
    """The inverse; what is missing is empty."""
    labels: Any = row.get("labels")
    return Subject(
        origin=str(row.get("origin", "")),
        number=int(row.get("number", 0)),
        title=str(row.get("title", "")),
        kind=str(row.get("kind", "")),
        labels=tuple(str(label) for label in labels or ()),
        opening=str(row.get("opening", "")),
    )
